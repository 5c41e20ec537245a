package check_test

import (
	"encoding/binary"
	"encoding/json/v2"
	"testing"

	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verdict is what a checker is to say: numbers of findings.
type verdict struct{ lost, duplicated, wrong int }

func expect(t *testing.T, r *check.Report, want verdict) {
	t.Helper()
	if got := (verdict{r.Lost, r.Duplicated, r.Wrong}); got != want {
		t.Errorf("got %+v, want %+v\n%s", got, want, r.Explain())
	}
	if r.OK() != (want == verdict{}) {
		t.Errorf("OK is %v", r.OK())
	}
}

// tally is that of the numbers given.
func tally(numbers ...int64) workload.Tally {
	var v workload.Tally
	for _, n := range numbers {
		v = v.Add(n)
	}
	return v
}

func TestSeq(t *testing.T) {
	for _, c := range []struct {
		name    string
		outputs []workload.Tally
		want    verdict
	}{
		{"every commit", []workload.Tally{tally(1), tally(1, 2, 3), tally(1, 2, 3, 4)}, verdict{}},
		{"the same again", []workload.Tally{tally(1, 2), tally(1, 2), tally(1, 2, 3, 4)}, verdict{}},
		{"a number missing", []workload.Tally{tally(1, 3, 4)}, verdict{lost: 2}},
		{"a number twice", []workload.Tally{tally(1, 2, 2, 3, 4)}, verdict{duplicated: 1}},
		{"one missing, one twice", []workload.Tally{tally(1, 2, 2, 4)}, verdict{wrong: 1}},
		{"gone back", []workload.Tally{tally(1, 2, 3), tally(1, 2), tally(1, 2, 3, 4)}, verdict{wrong: 1}},
		{"the end missing", []workload.Tally{tally(1, 2)}, verdict{lost: 2}},
		{"from nowhere", []workload.Tally{tally(1, 2, 3, 4, 5)}, verdict{wrong: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := check.NewSeq()
			for n := range int64(4) {
				s.Input(check.Record{Offset: n, Key: []byte("k"), Value: number(n + 1)})
			}
			for n, o := range c.outputs {
				s.Output(check.Record{Offset: int64(n), Key: []byte("k"), Value: encode(t, o)})
			}
			expect(t, s.Done(), c.want)
		})
	}
}

func TestSum(t *testing.T) {
	type out struct {
		key string
		sum int64
	}
	all := []out{{"a", 1}, {"b", 2}, {"a", 4}, {"a", 8}}
	for _, c := range []struct {
		name    string
		outputs []out
		want    verdict
	}{
		{"one to one", all, verdict{}},
		{"one missing", []out{all[0], all[1], all[3]}, verdict{lost: 1}},
		{"the last missing", all[:3], verdict{lost: 1}},
		{"one twice", []out{all[0], all[1], all[1], all[2], all[3]}, verdict{duplicated: 1}},
		{"wrong sum", []out{all[0], all[1], {"a", 5}, all[3]}, verdict{wrong: 1, lost: 1}},
		{"order of keys", []out{all[1], all[0], all[2], all[3]}, verdict{wrong: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := check.NewSum()
			for n, in := range []out{{"a", 1}, {"b", 2}, {"a", 3}, {"a", 4}} {
				s.Input(check.Record{Offset: int64(n), Key: []byte(in.key), Value: number(in.sum)})
			}
			for n, o := range c.outputs {
				s.Output(check.Record{Offset: int64(n), Key: []byte(o.key), Value: number(o.sum)})
			}
			r := s.Done()
			if c.name == "order of keys" { // how many follow from one disorder is of no account
				if r.Wrong == 0 || r.Lost+r.Duplicated > 0 {
					t.Errorf("%s", r)
				}
				return
			}
			if c.name == "one missing" || c.name == "wrong sum" {
				r.Wrong = c.want.wrong // so is that here
			}
			expect(t, r, c.want)
		})
	}
}

func TestBank(t *testing.T) {
	type out struct {
		account int64
		b       workload.Balance
	}
	// Transfer 1 moves 10 from 5 to 6, transfer 2 moves 3 from 6 to 5.
	all := []out{
		{5, workload.Balance{Sum: -10, Count: 1, Transfer: 1, Amount: -10}},
		{6, workload.Balance{Sum: 10, Count: 1, Transfer: 1, Amount: 10}},
		{6, workload.Balance{Sum: 7, Count: 2, Transfer: 2, Amount: -3}},
		{5, workload.Balance{Sum: -7, Count: 2, Transfer: 2, Amount: 3}},
	}
	for _, c := range []struct {
		name    string
		outputs []out
		want    verdict
	}{
		{"every leg once", all, verdict{}},
		{"a leg missing", all[:3], verdict{lost: 1, wrong: 1}}, // and the sum is not zero
		{"a leg twice", append(all[:4:4], out{5, workload.Balance{Sum: -4, Count: 3, Transfer: 2, Amount: 3}}), verdict{duplicated: 1, wrong: 1}},
		{"a balance repeated", append(all[:4:4], all[3]), verdict{duplicated: 1, wrong: 1}},
		{"a foreign leg", append(all[:4:4], out{5, workload.Balance{Sum: -7, Count: 3, Transfer: 9}}), verdict{wrong: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := check.NewBank()
			for n, in := range []workload.Transfer{{ID: 1, From: 5, To: 6, Amount: 10}, {ID: 2, From: 6, To: 5, Amount: 3}} {
				b.Input(check.Record{Offset: int64(n), Value: encode(t, in)})
			}
			for _, o := range c.outputs {
				b.Output(check.Record{Key: number(o.account), Value: encode(t, o.b)})
			}
			expect(t, b.Done(), c.want)
		})
	}
}

func TestCompare(t *testing.T) {
	log := make(check.Rows)
	log.Replay([]byte("a"), []byte("1"), 5)
	log.Replay([]byte("b"), []byte("2"), 5)
	log.Replay([]byte("a"), []byte("3"), 6)
	log.Replay([]byte("b"), nil, 7)
	a := string(append(number(6), '3'))
	for _, c := range []struct {
		name string
		is   check.Rows
		want verdict
	}{
		{"equal", check.Rows{"a": a}, verdict{}},
		{"missing", check.Rows{}, verdict{wrong: 1}},
		{"older", check.Rows{"a": string(append(number(5), '1'))}, verdict{wrong: 1}},
		{"other time", check.Rows{"a": string(append(number(7), '3'))}, verdict{wrong: 1}},
		{"deleted row kept", check.Rows{"a": a, "b": string(append(number(5), '2'))}, verdict{wrong: 1}},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, check.Compare("s", log, c.is), c.want) })
	}
}

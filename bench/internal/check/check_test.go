package check_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/bench/internal/check"
	"github.com/tidemark/tidemark/bench/internal/workload"
)

const n, seed = 2000, 7

type pair struct{ key, value []byte }

// right returns what a correct system writes.
func right(t *testing.T, name string) (workload.Spec, []pair) {
	t.Helper()
	s, err := workload.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	g := workload.NewGen(s, n, seed)
	var out []pair
	var r workload.Rec
	counts := map[string]int64{}
	count := func(key []byte) {
		counts[string(key)]++
		out = append(out, pair{key, binary.BigEndian.AppendUint64(nil, uint64(counts[string(key)]))})
	}
	if s.Windows() > 0 {
		return s, panes(s, g)
	}
	for g.Next(&r) {
		switch name {
		case "W1":
			if r.Amount%2 == 0 {
				r.Amount++
				out = append(out, pair{workload.AppendKey(nil, r.ID), g.AppendValue(nil, &r)})
			}
		case "W6":
			count(binary.BigEndian.AppendUint64(nil, uint64(r.Amount%workload.Items%workload.Categories)))
		default:
			count(workload.AppendKey(nil, r.ID))
		}
	}
	return s, out
}

// panes adds every record to every window it belongs to. It leaves out the windows that end in the last moments.
func panes(s workload.Spec, g *workload.Gen) (out []pair) {
	count := map[string]int64{}
	var r workload.Rec
	for g.Next(&r) {
		for i := range s.Windows() {
			end := (r.Time/workload.Hop + 1 + i) * workload.Hop
			count[string(binary.BigEndian.AppendUint64(workload.AppendKey(nil, r.ID), uint64(end)))]++
		}
	}
	for key, n := range count {
		if end := int64(binary.BigEndian.Uint64([]byte(key)[workload.KeySize:])); end <= workload.Base+s.Span-12*workload.Hop {
			out = append(out, pair{[]byte(key), binary.BigEndian.AppendUint64(nil, uint64(n))})
		}
	}
	return out
}

func judge(t *testing.T, s workload.Spec, records []pair) error {
	t.Helper()
	c, err := check.New(s, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := c.Record(r.key, r.value); err != nil {
			return err
		}
	}
	return c.Finish()
}

func TestCheckers(t *testing.T) {
	for _, name := range []string{"W1", "W2", "W2Z", "W6", "H10"} {
		s, out := right(t, name)
		if err := judge(t, s, out); err != nil {
			t.Errorf("%s: correct output: %v", name, err)
		}
		for what, wrong := range map[string][]pair{
			"a record is missing": out[:len(out)-1],
			"a record is doubled": append(out[:len(out):len(out)], out[len(out)-1]),
			"a key is cut":        {{out[0].key[1:], out[0].value}},
			"a value is cut":      {{out[0].key, out[0].value[1:]}},
		} {
			if judge(t, s, wrong) == nil {
				t.Errorf("%s: not noticed: %s", name, what)
			}
		}
	}
}

func TestChangedByte(t *testing.T) {
	s, out := right(t, "W1")
	out[3].value[60] ^= 1
	if err := judge(t, s, out); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("a changed byte: %v", err)
	}
}

func TestNoChecker(t *testing.T) {
	s, err := workload.Find("W10")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.New(s, n, seed); err == nil {
		t.Error("W10 has a checker")
	}
}

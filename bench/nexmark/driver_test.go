package nexmark

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/topology"
)

// arrival is an event with the time at which it is processed.
type arrival struct {
	now int64
	e   Event
}

func each(list []arrival) iter.Seq2[int64, Event] {
	return func(yield func(int64, Event) bool) {
		for _, a := range list {
			if !yield(a.now, a.e) {
				return
			}
		}
	}
}

// expected returns what the evaluator computes, in order.
func expected(q Query, input iter.Seq2[int64, Event]) []Row {
	var rows []Row
	q.Evaluate(input, func(r Row) { rows = append(rows, r) })
	slices.SortFunc(rows, Row.Compare)
	return rows
}

// drive runs a query in memory. Between events the clock moves by up to pace ms at a time; every crash-th event, if not 0,
// an instance dies that has not committed. It returns the output in order, and what came in when.
func drive(t *testing.T, q Query, events []Event, end Event, rnd *rand.Rand, o tidemarktest.Options, pace int64, crash int) (rows []Row, input []arrival) {
	t.Helper()
	o.Start = time.UnixMilli(start + rnd.Int64N(20_000))
	d := tidemarktest.New(t, q.Topology("nexmark", nil), o)
	in := tidemarktest.Input[[]byte, Event](d, Input, topology.With(codec.Bytes(), Codec()))
	send := func(e Event, partition int) {
		input = append(input, arrival{d.Now().UnixMilli(), e})
		in.Send(nil, e, tidemarktest.AtMillis(e.Time()), tidemarktest.To(partition))
	}
	for i, e := range events {
		send(e, i%o.Partitions)
		if crash > 0 && i%crash == crash-1 {
			d.Crash(i / crash % o.Instances) // what was lost is processed again, at the same time
		}
		if rnd.IntN(100) == 0 {
			d.Commit()
			d.Advance(time.Duration(rnd.Int64N(pace)) * time.Millisecond)
		}
	}
	d.Commit()
	for p := range o.Partitions {
		send(end, p)
	}
	d.Commit()
	d.Advance(period + time.Second)
	if late := d.Late(); len(late) > 0 {
		t.Fatalf("%d records are late, the first is %+v", len(late), late[0])
	}
	for _, r := range tidemarktest.Output[[]byte, []byte](d, q.Output()).ReadAll() {
		rows = append(rows, Row{r.Key, r.Time.UnixMilli(), r.Value})
	}
	slices.SortFunc(rows, Row.Compare)
	return rows, input
}

// compare reports the first rows that differ.
func compare(t *testing.T, got, want []Row) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Errorf("%d rows, want %d: %s", len(got), len(want), d)
	}
}

// difference describes where two lists of rows, both in order, part.
func difference(got, want []Row) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "missing: " + want[i].String()
		case i >= len(want):
			return "too much: " + got[i].String()
		case got[i].Compare(want[i]) != 0:
			return "got " + got[i].String() + ", want " + want[i].String()
		}
	}
	return ""
}

// Every query gives what plain loops give: with one and with four partitions, events out of order, crashes and a clock
// that the test moves.
func TestQueries(t *testing.T) {
	random := rand.Uint64()
	t.Logf("random seed %d", random)
	for _, q := range Queries() {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			for i, seed := range []uint64{1, 2, 3, random} {
				rnd := rand.New(rand.NewPCG(seed, 7))
				o := Options{Events: 3000, Seed: seed, Every: 15 * time.Millisecond, Delayed: 0.1}
				run := tidemarktest.Options{Partitions: 1, Instances: 1}
				crash := 0
				if i > 0 {
					run = tidemarktest.Options{Partitions: 4, Instances: 2}
				}
				if i > 1 {
					crash = 700
				}
				switch q.Name {
				case "q14":
					o.Every = time.Minute // all hours of two days
				case "q2":
					o.Events = 6000 // auctions 1107 and 1230 come and go
				case "q11":
					o.Every = 40 * time.Millisecond // there are sessions that end
				}
				rows, input := drive(t, q, slices.Collect(Generate(o)), End(o), rnd, run, 1500, crash)
				want := expected(q, each(input))
				if len(want) < 3 {
					t.Errorf("seed %d: only %d rows are expected", seed, len(want))
				}
				compare(t, rows, want)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// The comparison sees a row that is missing, too much, or different in any of its parts.
func TestDifference(t *testing.T) {
	row := func() Row { return Row{[]byte("k"), 1, []byte("v")} }
	two := []Row{row(), {[]byte("l"), 1, []byte("v")}}
	if d := difference(two, two); d != "" {
		t.Errorf("equal rows differ: %s", d)
	}
	key, time, value, null := row(), row(), row(), row()
	key.Key, time.Time, value.Value, null.Key = []byte("K"), 2, []byte("V"), nil
	for _, got := range [][]Row{two[:1], two[1:], nil, append(two, two[1]), {key, two[1]}, {time, two[1]}, {value, two[1]}, {null, two[1]}} {
		if difference(got, two) == "" {
			t.Errorf("%v passes for %v", got, two)
		}
	}
}

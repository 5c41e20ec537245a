package tidemarktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// TestSlices compares aggregates that are kept by slices with the same ones kept by windows, which a function that does
// not merge is, over random windows, disorder, commits, crashes and restores, with firings cut in the middle.
func TestSlices(t *testing.T) {
	t.Parallel()
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	first := rand.Uint64() % 1_000_000
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", first+seed), func(t *testing.T) { testSlices(t, first+seed) })
	}
}

func testSlices(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	step := int64(rng.IntN(5) + 1)
	w := window.Hopping(time.Duration(step*int64(rng.IntN(40)+2))*time.Millisecond, time.Duration(step)*time.Millisecond)
	if rng.IntN(3) == 0 {
		w = window.Cumulate(time.Duration(step)*time.Millisecond, time.Duration(step*int64(rng.IntN(40)+2))*time.Millisecond)
	} else if rng.IntN(2) == 0 {
		hop := step * int64(rng.IntN(4)+1)
		w = window.Hopping(time.Duration(hop*int64(rng.IntN(9)+1)+step)*time.Millisecond, time.Duration(hop)*time.Millisecond)
	}
	w = w.Offset(time.Duration(rng.Int64N(step)) * time.Millisecond)
	modes := []window.Option{window.Accumulating(), window.Discarding(), window.Retracting()}
	mode := modes[rng.IntN(len(modes))]

	top := topology.New("app")
	in := top.Stream[string, int64]("in").Timestamps(nil, watermark.OutOfOrderness(time.Duration(rng.IntN(60))*time.Millisecond),
		watermark.IdleAfter(watermark.Never))
	show := func(p topology.Pane[string, int64]) string {
		return fmt.Sprintf("%d-%d %d %v#%d last %t op %d w %d t %d", p.Start, p.End, p.Value, p.Timing, p.Index, p.Last, p.Op, p.Watermark, p.MaxTime)
	}
	in.Window(w, mode).Sum("sliced", func(v int64) int64 { return v }).Map(show).To("sliced-out")
	in.Window(w, mode).TryAggregate("plain", func(_ *topology.Context, _ string, acc, v int64) (int64, error) { return acc + v, nil }).
		Map(show).To("plain-out")
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Contains(plan.Describe(), "sliced-blocks"), w.Sliced(); got != want {
		t.Fatalf("%v: by slices %t, want %t", w, got, want)
	}
	partitions := rng.IntN(2) + 1
	d := New(t, top, Options{Partitions: partitions, firings: rng.IntN(12)})
	records := Input[string, int64](d, "in")
	base := rng.Int64N(2000) - 1000 // -1 is no time
	for range 300 {
		switch n := rng.IntN(100); {
		case n < 70:
			base += rng.Int64N(8)
			at := base - rng.Int64N(80)*rng.Int64N(2)
			if at == -1 {
				at = 0
			}
			records.Send(fmt.Sprint("k", rng.IntN(6)), rng.Int64N(1000), AtMillis(at), To(rng.IntN(partitions)))
		case n < 72:
			base += rng.Int64N(500) // several windows at once
		case n < 90:
			d.Commit()
		case n < 97:
			d.RestoreBy(Restore(rng.IntN(2)))
			d.Crash(0)
		default:
			d.Rebalance()
		}
	}
	for p := range partitions {
		records.Send("end", 0, AtMillis(base+10_000), To(p))
	}
	d.Commit()
	sliced, plain := Output[string, string](d, "sliced-out").ReadAll(), Output[string, string](d, "plain-out").ReadAll()
	text := func(list []Record[string, string]) (s []string) {
		for _, r := range list {
			s = append(s, fmt.Sprint(r.Partition, " ", r.Key, " ", r.Value, " ", r.Time.UnixMilli()))
		}
		return s
	}
	a, b := text(sliced), text(plain)
	if partitions > 1 { // how the results of tasks interleave depends on where the firings are cut
		slices.Sort(a)
		slices.Sort(b)
	}
	if len(a) == 0 {
		t.Error("nothing was shown")
	}
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("%v: result %d of %d and %d differs:\n  by slices  %v\n  by windows %v", w, i, len(a), len(b), at(a, i), at(b, i))
		}
	}
	var late [2][]string
	for _, l := range d.Late() {
		s := fmt.Sprintf("%+v", l)
		if strings.Contains(s, "sliced") {
			late[0] = append(late[0], strings.ReplaceAll(s, "sliced", "plain"))
		} else {
			late[1] = append(late[1], s)
		}
	}
	slices.Sort(late[0])
	slices.Sort(late[1])
	if !slices.Equal(late[0], late[1]) {
		t.Errorf("late records differ:\n%v\n%v", strings.Join(late[0], "\n"), strings.Join(late[1], "\n"))
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

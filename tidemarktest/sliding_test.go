package tidemarktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// TestSliding compares the last pane of every sliding window with a loop over all records, over random disorder, commits,
// crashes and restores, with firings cut in the middle.
func TestSliding(t *testing.T) {
	t.Parallel()
	first := rand.Uint64() % 1_000_000
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed=%d", first+seed), func(t *testing.T) { testSliding(t, first+seed) })
	}
}

func testSliding(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 12))
	diff := rng.Int64N(30)
	bound, lateness := rng.Int64N(40), rng.Int64N(40)
	disorder := bound + lateness // nothing is late
	top := topology.New("app")
	top.Stream[string, int64]("in").Timestamps(nil, watermark.OutOfOrderness(time.Duration(bound)*time.Millisecond), watermark.IdleAfter(watermark.Never)).
		Window(window.Sliding(time.Duration(diff)*time.Millisecond), window.AllowedLateness(time.Duration(lateness)*time.Millisecond)).
		Sum("sum", func(v int64) int64 { return v }).
		Map(func(p topology.Pane[string, int64]) string { return fmt.Sprintf("%d %d %d", p.Start, p.End, p.Value) }).To("out")
	d := New(t, top, Options{firings: rng.IntN(12)})
	in := Input[string, int64](d, "in")
	type rec struct{ t, v int64 }
	sent := map[string][]rec{}
	now := rng.Int64N(2000)
	for range 300 {
		switch n := rng.IntN(100); {
		case n < 75:
			now += rng.Int64N(8)
			r := rec{max(0, now-rng.Int64N(disorder+1)*rng.Int64N(2)), rng.Int64N(1000)}
			k := fmt.Sprint("k", rng.IntN(4))
			in.Send(k, r.v, AtMillis(r.t))
			sent[k] = append(sent[k], r)
		case n < 90:
			d.Commit()
		default:
			d.RestoreBy(Restore(rng.IntN(2)))
			d.Crash(0)
		}
	}
	in.Send("end", 0, AtMillis(now+100_000))
	d.Commit()
	if l := d.Late(); len(l) > 0 {
		t.Fatalf("%d late records: %+v", len(l), l[0])
	}
	want, got := map[string]int64{}, map[string]int64{}
	for k, list := range sent {
		for _, r := range list {
			for _, start := range []int64{r.t - diff, r.t + 1} {
				sum, any := int64(0), false
				for _, o := range list {
					if o.t >= start && o.t <= start+diff {
						sum, any = sum+o.v, true
					}
				}
				if any {
					want[fmt.Sprintf("%s %d %d", k, start, start+diff+1)] = sum
				}
			}
		}
	}
	shown := 0
	for _, r := range Output[string, string](d, "out").ReadAll() {
		var start, end, v int64
		if _, err := fmt.Sscan(r.Value, &start, &end, &v); err != nil {
			t.Fatal(err)
		}
		if r.Key != "end" {
			got[fmt.Sprintf("%s %d %d", r.Key, start, end)] = v
			shown++
		}
	}
	if lateness == 0 && shown != len(want) {
		t.Errorf("%d panes for %d windows", shown, len(want))
	}
	if !maps.Equal(got, want) {
		for w, v := range want {
			if g, ok := got[w]; !ok || g != v {
				t.Errorf("diff %d, bound %d, lateness %d: %s: got %d, %t, want %d", diff, bound, lateness, w, g, ok, v)
			}
		}
		for w, v := range got {
			if _, ok := want[w]; !ok {
				t.Errorf("diff %d: %s=%d is no window", diff, w, v)
			}
		}
	}
}

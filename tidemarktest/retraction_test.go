package tidemarktest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// TestRetractionsDownstream sums up, per window, what retracting windows show of single keys, early, on time and late: the
// sum is that of the last values, after crashes and restores as well, and never counts a value that was taken back.
func TestRetractionsDownstream(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{window.Tumbling(10 * time.Millisecond), window.Hopping(20*time.Millisecond, 10*time.Millisecond)} {
		for range 10 {
			seed := rand.Uint64() % 1_000_000
			t.Run(fmt.Sprintf("%v/seed=%d", w, seed), func(t *testing.T) { testRetractions(t, w, seed) })
		}
	}
}

func testRetractions(t *testing.T, w window.Window, seed uint64) {
	type part struct{ Start, Value int64 }
	rng := rand.New(rand.NewPCG(seed, 13))
	top := topology.New("app")
	top.Stream[string, int64]("in").Timestamps(nil, watermark.OutOfOrderness(10*time.Millisecond), watermark.IdleAfter(watermark.Never)).
		Window(w, window.Retracting(), window.Early(window.AfterCount(2)), window.AllowedLateness(50*time.Millisecond)).
		Sum("sums", func(v int64) int64 { return v }).
		Map(func(p topology.Pane[string, int64]) part { return part{p.Start, p.Value} }).
		KeyBy("by-window", func(v part) int64 { return v.Start }).
		Sum("totals", func(v part) int64 { return v.Value }).ToStream().To("out")
	d := New(t, top, Options{Partitions: 1 + rng.IntN(2), Instances: 1 + rng.IntN(2), firings: rng.IntN(5)})
	in := Input[string, int64](d, "in")
	want := map[int64]int64{}
	cfg, err := window.New(w)
	if err != nil {
		t.Fatal(err)
	}
	now := int64(1000)
	for range 300 {
		switch n := rng.IntN(100); {
		case n < 75:
			now += rng.Int64N(4)
			at, v := now-rng.Int64N(60)*rng.Int64N(2), rng.Int64N(100)
			in.Send(fmt.Sprint("k", rng.IntN(5)), v, AtMillis(at))
			for _, b := range cfg.Window.Assign(nil, at) {
				want[b.Start] += v
			}
		case n < 90:
			d.Commit()
		default:
			d.RestoreBy(Restore(rng.IntN(2)))
			d.Crash(0)
		}
	}
	for k := range 10 {
		in.Send(fmt.Sprint("k", k), 0, AtMillis(now+100_000))
	}
	d.Commit()
	if l := d.Late(); len(l) > 0 {
		t.Fatalf("%d late records: %+v", len(l), l[0])
	}
	got := map[int64]int64{}
	for _, r := range Output[int64, int64](d, "out").ReadAll() {
		got[r.Key] = r.Value
	}
	for start, v := range want {
		if got[start] != v {
			t.Errorf("window %d: total %d, want %d", start, got[start], v)
		}
	}
}

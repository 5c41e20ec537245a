package window

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCover compares the arithmetic of covers with lists of windows.
func TestCover(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		step := rng.Int64N(6) + 1
		n := rng.Int64N(12) + 2
		w := Hopping(time.Duration(step*n+rng.Int64N(step))*time.Millisecond, time.Duration(step)*time.Millisecond)
		if rng.IntN(2) == 0 {
			w = Cumulate(time.Duration(step)*time.Millisecond, time.Duration(step*n)*time.Millisecond)
		}
		w = w.Offset(time.Duration(rng.Int64N(step)) * time.Millisecond)
		ts, wm := rng.Int64N(400)-200, rng.Int64N(500)-250
		if rng.IntN(20) == 0 {
			wm = []int64{minTime, maxTime, minTime + 1, maxTime - 1}[rng.IntN(4)]
		}
		s := w.Slice(ts)
		list := w.Assign(nil, s.Start)
		c := w.Cover(s)
		complete, next, open := 0, int64(0), false
		for _, b := range list {
			if b.Last() <= wm {
				complete++
			} else if !open {
				next, open = b.End, true
			}
		}
		if c.First != list[0].End || c.Last != list[len(list)-1].End {
			t.Fatalf("seed %d: %v slice %v: cover %+v of %v", seed, w, s, c, list)
		}
		if got := c.Complete(wm); got != complete {
			t.Fatalf("seed %d: %v slice %v at %d: %d complete, want %d", seed, w, s, wm, got, complete)
		}
		if got, ok := c.Next(wm); got != next || ok != open {
			t.Fatalf("seed %d: %v slice %v at %d: next %d %t, want %d %t", seed, w, s, wm, got, ok, next, open)
		}
		if i := w.SliceIndex(s.End); w.SliceEnd(i) != s.End || w.SliceIndex(s.Start) != i-1 {
			t.Fatalf("seed %d: %v slice %v: index %d, end %d", seed, w, s, i, w.SliceEnd(i))
		}
		if done := w.SlicesDone(wm); (s.End <= done) != !open {
			t.Fatalf("seed %d: %v slice %v at %d: done up to %d, open %t", seed, w, s, wm, done, open)
		}
	}
}

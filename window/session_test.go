package window

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestSessionBounds(t *testing.T) {
	w := Session(10 * time.Millisecond)
	a, b, c := w.Proto(0), w.Proto(10), w.Proto(9)
	if a.Intersects(b) || b.Intersects(a) {
		t.Error("sessions exactly the gap apart intersect")
	}
	if !a.Intersects(c) || !c.Intersects(a) || a.Union(c) != (Bounds{0, 19}) {
		t.Error(a, c, a.Union(c))
	}
	// The inactivity gap of Kafka Streams, in which records at that distance are in one session.
	k := Session(10*time.Millisecond + time.Millisecond)
	if !k.Proto(0).Intersects(k.Proto(10)) || k.Proto(0).Intersects(k.Proto(11)) {
		t.Error("gap of Kafka Streams")
	}
}

func TestSliding(t *testing.T) {
	w := Sliding(10 * time.Millisecond)
	for _, c := range []struct {
		why   string
		ts    int64
		times []int64
		want  []Bounds
	}{
		{"alone", 20, nil, []Bounds{{10, 21}}},
		{"again", 20, []int64{20}, []Bounds{{10, 21}}},
		{"in reach of one before: its right window now holds a record", 20, []int64{12}, []Bounds{{10, 21}, {13, 24}}},
		{"one before at the distance", 20, []int64{10}, []Bounds{{10, 21}, {11, 22}}},
		{"one before, one further than its left window", 20, []int64{9}, []Bounds{{10, 21}}},
		{"one before: its right window is the left one of this", 20, []int64{9, 20}, []Bounds{{10, 21}}},
		{"one after: its left window, and the one right of this", 20, []int64{25}, []Bounds{{10, 21}, {15, 26}, {21, 32}}},
		{"one after whose left window is the one right of this", 20, []int64{31}, []Bounds{{10, 21}}},
		{"one that its right window reaches besides others", 20, []int64{30, 31}, []Bounds{{10, 21}, {20, 31}}},
		{"one too late", 20, []int64{32}, []Bounds{{10, 21}}},
		{"before zero", 3, []int64{1}, []Bounds{{-7, 4}, {2, 13}}},
	} {
		if have := w.Affected(nil, c.ts, c.times); !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", c.why, have, c.want)
		}
	}
}

// TestSlidingTwin adds records one by one and compares what changed with all windows there are before and after.
func TestSlidingTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	all := func(w Window, times []int64) map[Bounds]int {
		m := map[Bounds]int{}
		for _, at := range times {
			for _, b := range []Bounds{w.Left(at), w.Right(at)} {
				n := 0
				for _, o := range times {
					if b.Contains(o) {
						n++
					}
				}
				if n > 0 {
					m[b] = n
				}
			}
		}
		return m
	}
	for range 300 {
		w := Sliding(time.Duration(r.IntN(8)) * time.Millisecond)
		var times, records []int64
		for range 20 {
			ts := int64(r.IntN(50) - 20)
			before := all(w, records)
			records = append(records, ts)
			var want []Bounds
			for b, n := range all(w, records) {
				if before[b] != n {
					want = append(want, b)
				}
			}
			slices.SortFunc(want, byEnd)
			have := w.Affected(nil, ts, times)
			if !slices.Equal(have, want) {
				t.Fatalf("seed %d: %v, %d to %v: %v, want %v", seed, w, ts, times, have, want)
			}
			if !slices.Contains(times, ts) {
				times = append(times, ts)
				slices.Sort(times)
			}
		}
	}
}

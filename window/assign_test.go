package window

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func instant(t testing.TB, s string) int64 {
	p, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return p.UnixMilli()
}

func TestAssign(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		w    Window
		ts   int64
		want []Bounds
	}{
		// W-NEG-FLOOR
		{Tumbling(10 * time.Second), -1, []Bounds{{-10000, 0}}},
		{Tumbling(10 * time.Second), -10000, []Bounds{{-10000, 0}}},
		{Tumbling(10 * time.Second), -10001, []Bounds{{-20000, -10000}}},
		{Tumbling(10 * ms), 9, []Bounds{{0, 10}}},
		{Tumbling(10 * ms), 10, []Bounds{{10, 20}}},
		{Tumbling(10 * ms).Offset(3 * ms), 2, []Bounds{{-7, 3}}},
		{Tumbling(10 * ms).Offset(-3 * ms), 7, []Bounds{{7, 17}}},
		{Hopping(10*ms, 5*ms), 11, []Bounds{{5, 15}, {10, 20}}},
		{Hopping(10*ms, 4*ms), 3, []Bounds{{-4, 6}, {0, 10}}},
		{Hopping(10*ms, 4*ms), 1, []Bounds{{-8, 2}, {-4, 6}, {0, 10}}},
		{Hopping(5*ms, 10*ms), 4, []Bounds{{0, 5}}},
		{Hopping(5*ms, 10*ms), 5, nil},
		{Hopping(5*ms, 10*ms), -1, nil},
		{Cumulate(5*ms, 15*ms), 0, []Bounds{{0, 5}, {0, 10}, {0, 15}}},
		{Cumulate(5*ms, 15*ms), 7, []Bounds{{0, 10}, {0, 15}}},
		{Cumulate(5*ms, 15*ms), -1, []Bounds{{-15, 0}}},
		{Session(10 * ms), 5, []Bounds{{5, 15}}},
		{Sliding(10 * ms), 15, []Bounds{{5, 16}}},
		{Global(), -7, []Bounds{{minTime, maxTime}}},
		{Tumbling(0), 5, nil},
		{Window{}, 5, nil},
	} {
		if have := c.w.Assign(nil, c.ts); !slices.Equal(have, c.want) {
			t.Errorf("%v of %d: %v, want %v", c.w, c.ts, have, c.want)
		}
	}
}

// TestNegativeOffset is W-NEG-OFFSET.
func TestNegativeOffset(t *testing.T) {
	east := Tumbling(24 * time.Hour).Offset(-8 * time.Hour)
	start, middle, end := instant(t, "2024-02-29T16:00:00Z"), instant(t, "2024-03-01T16:00:00Z"), instant(t, "2024-03-02T16:00:00Z")
	for _, w := range []Window{east, Tumbling(24 * time.Hour).Offset(16 * time.Hour)} {
		if have := w.Assign(nil, instant(t, "2024-03-01T15:59:59.999Z")); have[0] != (Bounds{start, middle}) {
			t.Errorf("%v: %v", w, have)
		}
		if have := w.Assign(nil, middle); have[0] != (Bounds{middle, end}) {
			t.Errorf("%v: %v", w, have)
		}
		if w.String() != east.String() {
			t.Errorf("%v and %v are the same windows", w, east)
		}
	}
}

// TestHourlyOverClockChanges is W-DST-HOUR.
func TestHourlyOverClockChanges(t *testing.T) {
	for _, s := range []string{"2025-03-30T00:30:00Z", "2025-03-30T01:30:00Z", "2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"} {
		ts := instant(t, s)
		want := Bounds{ts - 30*60*1000, ts + 30*60*1000}
		if have := Tumbling(time.Hour).Assign(nil, ts); !slices.Equal(have, []Bounds{want}) {
			t.Errorf("%s: %v, want %v", s, have, want)
		}
	}
}

// fixed are windows whose bounds are on a grid.
func fixed(r *rand.Rand) Window {
	n := func() time.Duration { return time.Duration(1+r.IntN(12)) * time.Millisecond }
	var w Window
	switch r.IntN(3) {
	case 0:
		w = Tumbling(n())
	case 1:
		w = Hopping(n(), n())
	default:
		step := n()
		w = Cumulate(step, step*time.Duration(1+r.IntN(5)))
	}
	if r.IntN(2) == 0 && w.Size() > 1 {
		w = w.Offset(time.Duration(r.Int64N(2*w.Size()-1)-w.Size()+1) * time.Millisecond)
	}
	return w
}

// allWindows lists the windows that hold ts by trying every start and end nearby, in ascending order of ends.
func allWindows(w Window, ts int64) []Bounds {
	var bs []Bounds
	for end := ts + 1; end <= ts+w.size; end++ {
		for start := ts - w.size; start <= ts; start++ {
			onGrid := floorMod(start-w.off, w.grid()) == 0
			length := end - start
			if w.kind == KindCumulate && onGrid && length%w.hop == 0 && length <= w.size || w.kind != KindCumulate && onGrid && length == w.size {
				bs = append(bs, Bounds{start, end})
			}
		}
	}
	return bs
}

// TestAssignTwin compares with all windows there are, and checks that ends, starts and slices lead back to them.
func TestAssignTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		w, ts := fixed(r), int64(r.IntN(200)-100)
		have, want := w.Assign(nil, ts), allWindows(w, ts)
		if !slices.Equal(have, want) {
			t.Fatalf("seed %d: %v of %d: %v, want %v", seed, w, ts, have, want)
		}
		checkWindows(t, seed, w, ts, have)
		slice := w.Slice(ts)
		for _, b := range have {
			for s := w.SliceOf(b.End); ; s = w.SliceOf(s.Start) {
				if s == slice {
					break
				}
				if s.Start <= b.Start {
					t.Fatalf("seed %d: %v: slice %v of %d is not part of %v", seed, w, slice, ts, b)
				}
			}
		}
	}
}

// TestSaturation checks the same for times at the ends of what there is.
func TestSaturation(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		w, ts := fixed(r), minTime+r.Int64N(40)
		if r.IntN(2) == 0 {
			ts = maxTime - 1 - r.Int64N(40)
		}
		checkWindows(t, seed, w, ts, w.Assign(nil, ts))
	}
	big := Hopping(100_000*time.Hour, time.Millisecond*7777777)
	for _, ts := range []int64{minTime, minTime + 1, maxTime - 1} {
		if have := big.Assign(nil, ts); len(have) > 50000 || len(have) < 1 {
			t.Errorf("%d: %d windows", ts, len(have))
		}
	}
	if have := Tumbling(10*time.Millisecond).Assign(nil, maxTime); have[0] != (Bounds{maxTime - 7, maxTime}) {
		t.Errorf("the largest time: %v", have)
	}
	for _, b := range []Bounds{Session(time.Hour).Proto(maxTime), Sliding(time.Hour).Left(minTime), Sliding(time.Hour).Right(maxTime)} {
		if b.Start >= b.End {
			t.Errorf("%v is empty", b)
		}
	}
}

func checkWindows(t *testing.T, seed uint64, w Window, ts int64, have []Bounds) {
	t.Helper()
	for i, b := range have {
		if !b.Contains(ts) || i > 0 && b.End <= have[i-1].End {
			t.Fatalf("seed %d: %v of %d: %v", seed, w, ts, have)
		}
		if of := w.Of(b.End); of != b {
			t.Fatalf("seed %d: %v: %d ends %v, want %v", seed, w, b.End, of, b)
		}
		if at := w.StartingAt(b.Start); w.kind != KindCumulate && at != b {
			t.Fatalf("seed %d: %v: %d starts %v, want %v", seed, w, b.Start, at, b)
		}
	}
	slice := w.Slice(ts)
	if !slice.Contains(ts) || w.SliceOf(slice.End) != slice {
		t.Fatalf("seed %d: %v: slice %v of %d", seed, w, slice, ts)
	}
	if c := w.Assign(nil, slice.Start); !slices.Equal(c, have) {
		t.Fatalf("seed %d: %v: slice %v of %d: covered by %v, want %v", seed, w, slice, ts, c, have)
	}
}

// TestSharedSlice is L-HOP-SHARED-SLICE: of the windows over the slice of a late record only the live ones take it.
func TestSharedSlice(t *testing.T) {
	c, err := New(Hopping(30*time.Millisecond, 10*time.Millisecond))
	if err != nil || !c.Window.Sliced() {
		t.Fatal(err, c.Window.Sliced())
	}
	var live []Bounds
	for _, b := range c.Window.Assign(nil, c.Window.Slice(35).Start) {
		if c.Refuses(b, 50-1) == Accepted {
			live = append(live, b)
		}
	}
	if !slices.Equal(live, []Bounds{{30, 60}}) {
		t.Error(live)
	}
}

func TestOfAndStartingAt(t *testing.T) {
	for _, c := range []struct {
		w      Window
		b      Bounds
		length int64
	}{
		{Tumbling(10 * time.Millisecond), Bounds{-10, 0}, 10},
		{Hopping(10*time.Millisecond, 5*time.Millisecond), Bounds{-5, 5}, 10},
		{Cumulate(5*time.Millisecond, 10*time.Millisecond), Bounds{-10, 0}, 10},
		{Session(10 * time.Millisecond), Bounds{7, 17}, 0},
		{Sliding(10 * time.Millisecond), Bounds{7, 18}, 11},
		{Global(), Bounds{minTime, maxTime}, 0},
		{Year(time.UTC), Bounds{0, 365 * 86_400_000}, 0},
		{Window{}, Bounds{}, 0},
	} {
		if of, at := c.w.Of(c.b.End), c.w.StartingAt(c.b.Start); of != c.b || at != c.b {
			t.Errorf("%v: ends %v, starts %v, want %v", c.w, of, at, c.b)
		}
		if c.w.Size() != c.length {
			t.Errorf("%v: size %d, want %d", c.w, c.w.Size(), c.length)
		}
	}
}

func TestSliced(t *testing.T) {
	for _, c := range []struct {
		w     Window
		want  bool
		width int64
	}{
		{Hopping(5*time.Minute, time.Minute), true, 60000},
		{Hopping(7*time.Second, 3*time.Second), true, 1000},
		{Hopping(10*time.Second, 9999*time.Millisecond), false, 1},
		{Hopping(time.Second, 2*time.Second), false, 1000},
		{Cumulate(time.Minute, time.Hour), true, 60000},
		{Cumulate(time.Minute, time.Minute), false, 60000},
		{Tumbling(time.Minute), false, 60000},
		{Session(time.Minute), false, 0},
		{Global(), false, 0},
	} {
		if have, width := c.w.Sliced(), c.w.SliceWidth(); have != c.want || width != c.width {
			t.Errorf("%v: %t, %d", c.w, have, width)
		}
	}
}

func TestAssignAllocatesNothing(t *testing.T) {
	berlin := location(t, "Europe/Berlin")
	dst := make([]Bounds, 0, 100)
	times := []int64{90, 95, 101, 105}
	for _, w := range []Window{Tumbling(time.Minute), Hopping(5*time.Minute, time.Minute), Cumulate(time.Minute, time.Hour),
		Session(time.Minute), Sliding(time.Minute), Global(), Day(berlin), Month(berlin)} {
		ts := int64(1_700_000_000_000)
		if n := testing.AllocsPerRun(100, func() {
			dst = w.Assign(dst[:0], ts)
			dst = w.Assign(dst[:0], w.Slice(ts).Start)
			dst = w.Affected(dst[:0], 100, times)
			ts += 12_345_678
		}); n != 0 {
			t.Errorf("%v: %v allocations", w, n)
		}
	}
}

package watermark

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// WM-ALL-IDLE: p0 is at 71 and p1 at 64; they fall silent in either order.
func TestWMAllIdle(t *testing.T) {
	for _, c := range []struct {
		all       AllIdle
		p0first   int64
		p1first   int64
		now       int64
		afterward int64 // with the clock at 200
	}{
		{Stay, 64, 71, 0, 64}, // W is what it was when the last one fell silent
		{AdvanceToMax, 71, 71, 0, 71},
		{AdvanceWithClock, 71, 71, 50, 189},
		{AdvanceWithClock, 109, 109, 120, 189},
	} {
		run := func(first int) (int64, []Input) {
			in := []Input{{W: 71}, {W: 64}}
			w, idle := Combine(Unknown, in, c.all, c.now, 10)
			if w != 64 || idle {
				t.Errorf("%v: %d, %v while both speak", c.all, w, idle)
			}
			for _, p := range []int{first, 1 - first} {
				in[p].Idle = true
				w, idle = Combine(w, in, c.all, c.now, 10)
			}
			if !idle {
				t.Errorf("%v: not idle", c.all)
			}
			return w, in
		}
		w0, in := run(0)
		if w1, _ := run(1); w0 != c.p0first || w1 != c.p1first {
			t.Errorf("%v: %d and %d, want %d and %d", c.all, w0, w1, c.p0first, c.p1first)
		}
		if w, _ := Combine(w0, in, c.all, 200, 10); w != c.afterward {
			t.Errorf("%v: %d later, want %d", c.all, w, c.afterward)
		}
	}
}

func TestCombine(t *testing.T) {
	idle := func(w int64) Input { return Input{W: w, Idle: true} }
	at := func(w int64) Input { return Input{W: w} }
	stream := func(w int64) Input { return Input{W: w, Max: true} }
	quiet := func(w int64) Input { return Input{W: w, Max: true, Idle: true} }
	for name, c := range map[string]struct {
		prev int64
		in   []Input
		all  AllIdle
		w    int64
		idle bool
	}{
		"no input":                      {5, nil, AdvanceWithClock, 5, true},
		"unknown holds":                 {Unknown, []Input{at(9), at(Unknown)}, Stay, Unknown, false},
		"an idle one does not":          {Unknown, []Input{at(9), idle(Unknown)}, Stay, 9, false},
		"never falls":                   {12, []Input{at(9), at(20)}, Stay, 12, false},
		"finished is left out":          {5, []Input{at(9), at(Finished)}, Stay, 9, false},
		"finished speaks for none":      {5, []Input{idle(9), at(Finished)}, Stay, 5, true},
		"nor at the maximum":            {5, []Input{idle(9), at(Finished)}, AdvanceToMax, 9, true},
		"all finished":                  {5, []Input{at(Finished), at(Finished)}, Stay, Finished, false},
		"all finished, stream time":     {5, []Input{stream(Finished), idle(Finished)}, Stay, Finished, false},
		"stream time is the highest":    {5, []Input{stream(9), stream(20), stream(Unknown)}, Stay, 20, false},
		"of idle ones as well":          {5, []Input{stream(9), quiet(20)}, Stay, 20, false},
		"and counts as one":             {5, []Input{stream(9), quiet(20), at(12)}, Stay, 12, false},
		"that holds":                    {5, []Input{stream(9), at(12)}, Stay, 9, false},
		"unless it is idle":             {5, []Input{quiet(9), at(12)}, Stay, 12, false},
		"one finished stream":           {5, []Input{stream(Finished), stream(7)}, Stay, 7, false},
		"all idle, stream time":         {5, []Input{quiet(9), idle(7)}, AdvanceToMax, 9, true},
		"unknown ones advance nowhere":  {Unknown, []Input{idle(Unknown)}, AdvanceToMax, Unknown, true},
		"the clock knows":               {Unknown, []Input{idle(Unknown)}, AdvanceWithClock, 89, true},
		"the clock is behind":           {95, []Input{idle(9)}, AdvanceWithClock, 95, true},
		"the clock has nothing to say":  {5, []Input{at(9)}, AdvanceWithClock, 9, false},
		"highest time an input can see": {5, []Input{at(math.MaxInt64 - 1)}, Stay, math.MaxInt64 - 1, false},
	} {
		if w, idle := Combine(c.prev, c.in, c.all, 100, 10); w != c.w || idle != c.idle {
			t.Errorf("%s: %d, %v, want %d, %v", name, w, idle, c.w, c.idle)
		}
	}
}

// WM-OVERFLOW
func TestCombineOverflow(t *testing.T) {
	in := []Input{{W: 3, Idle: true}}
	for _, c := range [][3]int64{
		{math.MinInt64 + 5, 100, 3}, {5, math.MaxInt64, 3}, {math.MaxInt64, 0, math.MaxInt64 - 1},
	} {
		if w, _ := Combine(Unknown, in, AdvanceWithClock, c[0], c[1]); w != c[2] {
			t.Errorf("now %d, delay %d: %d", c[0], c[1], w)
		}
	}
}

// naiveCombine says the same as Combine by sorting and sieving.
func naiveCombine(prev int64, inputs []Input, all AllIdle, now, delay int64) (int64, bool) {
	if len(inputs) == 0 {
		return prev, true
	}
	left := slices.DeleteFunc(slices.Clone(inputs), func(in Input) bool { return in.W == Finished })
	if len(left) == 0 {
		return Finished, false
	}
	byW := func(a, b Input) int {
		if a.W < b.W {
			return -1
		}
		return 1
	}
	top := slices.MaxFunc(left, byW).W
	stream := slices.DeleteFunc(slices.Clone(left), func(in Input) bool { return !in.Max })
	left = slices.DeleteFunc(left, func(in Input) bool { return in.Max })
	if len(stream) > 0 {
		one := slices.MaxFunc(stream, byW)
		one.Idle = !slices.ContainsFunc(stream, func(in Input) bool { return !in.Idle })
		left = append(left, one)
	}
	left = slices.DeleteFunc(left, func(in Input) bool { return in.Idle })
	if len(left) > 0 {
		return max(prev, slices.MinFunc(left, byW).W), false
	}
	switch all {
	case AdvanceToMax:
		prev = max(prev, top)
	case AdvanceWithClock:
		prev = max(prev, top, now-delay-1)
	}
	return prev, true
}

func TestCombineTwin(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 20000 {
		in := make([]Input, rng.IntN(6))
		for i := range in {
			in[i] = Input{W: rng.Int64N(100), Idle: rng.IntN(2) == 0, Max: rng.IntN(3) == 0}
			switch rng.IntN(12) {
			case 0:
				in[i].W = Unknown
			case 1:
				in[i].W = Finished
			}
		}
		prev, all, now := rng.Int64N(80), AllIdle(rng.IntN(3)), rng.Int64N(200)
		if rng.IntN(4) == 0 {
			prev = Unknown
		}
		w, idle := Combine(prev, in, all, now, 10)
		if nw, ni := naiveCombine(prev, in, all, now, 10); w != nw || idle != ni || w < prev {
			t.Fatalf("seed %d, round %d: Combine(%d, %+v, %v, %d) = %d, %v, want %d, %v", seed, n, prev, in, all, now, w, idle, nw, ni)
		}
		rng.Shuffle(len(in), func(i, k int) { in[i], in[k] = in[k], in[i] })
		if sw, si := Combine(prev, in, all, now, 10); sw != w || si != idle {
			t.Fatalf("seed %d, round %d: another order gives %d, %v instead of %d, %v", seed, n, sw, si, w, idle)
		}
	}
}

// Partitions speak and fall silent in any order; once all are idle, the rules
// that advance end at the same W in every order.
func TestCombineOrder(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 500 {
		final := make([]int64, 1+rng.IntN(5))
		for i := range final {
			final[i] = rng.Int64N(1000)
		}
		all := AdvanceToMax + AllIdle(rng.IntN(2))
		want := max(slices.Max(final), map[bool]int64{true: 489}[all == AdvanceWithClock])
		in := make([]Input, len(final))
		for i := range in {
			in[i].W = Unknown
		}
		w := int64(Unknown)
		step := func() {
			next, _ := Combine(w, in, all, 500, 10)
			if next < w {
				t.Fatalf("seed %d, round %d: W falls from %d to %d", seed, n, w, next)
			}
			w = next
		}
		for range 20 {
			i := rng.IntN(len(in))
			if in[i].Idle = rng.IntN(3) == 0 && rng.IntN(2) == 0; !in[i].Idle {
				in[i].W = max(in[i].W, rng.Int64N(final[i]+1))
			}
			// The clock would pass what is still to come; only the end is compared.
			if slices.ContainsFunc(in, func(in Input) bool { return !in.Idle }) {
				step()
			}
		}
		for _, i := range rng.Perm(len(in)) {
			in[i] = Input{W: final[i]}
			step()
			in[i].Idle = true
		}
		step()
		if w != want {
			t.Fatalf("seed %d, round %d: %v: %d, want %d of %v", seed, n, all, w, want, final)
		}
	}
}

func TestCombineAllocates(t *testing.T) {
	in := []Input{{W: 1}, {W: 2, Idle: true}, {W: 3, Max: true}}
	w := int64(Unknown)
	if n := testing.AllocsPerRun(100, func() { w, _ = Combine(w, in, Stay, 0, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// F-STALL: one record of 3 s, read 2 s later by the clock, then silence. Its
// window [0 s, 10 s) is complete at 12 s only where the clock may say so.
func TestFStall(t *testing.T) {
	for _, all := range []AllIdle{Stay, AdvanceWithClock} {
		s := settings(t, OutOfOrderness(2*time.Second), IdleAfter(5*time.Second), WhenAllIdle(all))
		g, in := s.New(), Input{W: Unknown}
		idle := NewIdleness(5000, s.IdleAfter)
		g.Observe(&Record{Time: 3000})
		in.W = g.Watermark()
		idle.Record(5000)
		idle.Probed(5000, true)
		w, complete := int64(Unknown), int64(0)
		for now := int64(5000); now <= 65000; now += 100 {
			if _, next := idle.Idle(now); next <= now {
				idle.Probed(now, true)
			}
			in.Idle, _ = idle.Idle(now)
			if in.Idle != (now >= 10000) {
				t.Fatalf("%v: idle %v at %d", all, in.Idle, now)
			}
			w, _ = Combine(w, []Input{in}, s.AllIdle, now, s.Delay.Milliseconds())
			if w >= 9999 && complete == 0 {
				complete = now
			}
		}
		if want := map[AllIdle]int64{Stay: 0, AdvanceWithClock: 12000}[all]; complete != want {
			t.Errorf("%v: window complete at %d, want %d", all, complete, want)
		}
	}
}

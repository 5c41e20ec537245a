package watermark

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// fact is one call of an Idleness.
type fact struct {
	at   int64
	kind byte // 'r'ecord, 'p'ause, 'g'o on, 'b'uffered, 'd'rained, '+' proof, '-' no proof, 'e'mpty, 'R'esume
}

func (f fact) tell(i *Idleness) {
	switch f.kind {
	case 'r':
		i.Record(f.at)
	case 'p', 'g':
		i.Paused(f.at, f.kind == 'p')
	case 'b', 'd':
		i.Buffered(f.at, f.kind == 'b')
	case '+', '-':
		i.Probed(f.at, f.kind == '+')
	case 'e':
		i.Empty(f.at)
	case 'R':
		i.Resume()
	}
}

func TestIdleness(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts []fact
		idle  bool
		next  int64
	}{
		{"silence proves nothing", nil, false, 10},
		{"a first proof starts the time-out", []fact{{10, '+'}}, false, 90},
		{"another ends it", []fact{{10, '+'}, {90, '+'}}, true, 170},
		{"too early", []fact{{10, '+'}, {89, '+'}}, false, 90},
		{"anchored at the first proof, not at every one", []fact{{10, '+'}, {50, '+'}, {90, '+'}}, true, 170},
		{"a record with the end of the log", []fact{{100, 'r'}, {100, '+'}, {180, '+'}}, true, 260},
		{"a record without", []fact{{10, '+'}, {100, 'r'}, {180, '+'}}, false, 260},
		{"the later of record and proof", []fact{{100, 'r'}, {110, '+'}, {180, '+'}}, false, 190},
		{"a record ends it", []fact{{10, '+'}, {90, '+'}, {95, 'r'}}, false, 105},
		{"a failed probe ends it", []fact{{10, '+'}, {90, '+'}, {170, '-'}}, false, 180},
		{"and restarts the time-out", []fact{{10, '+'}, {80, '-'}, {90, '+'}, {100, '+'}}, false, 170},
		{"failed probes alone", []fact{{10, '-'}, {20, '-'}}, false, 30},
		{"never while paused", []fact{{10, '+'}, {90, '+'}, {95, 'p'}}, false, Finished},
		{"nor by probes", []fact{{5, 'p'}, {10, '+'}, {90, '+'}, {200, '+'}}, false, Finished},
		{"afterwards all over", []fact{{10, '+'}, {90, '+'}, {95, 'p'}, {100, 'g'}}, false, 110},
		{"proofs of the pause do not count", []fact{{5, 'p'}, {10, '+'}, {100, 'g'}, {101, '+'}}, false, 181},
		{"never with records waiting", []fact{{10, 'r'}, {10, '+'}, {10, 'b'}, {90, '+'}, {300, '+'}}, false, Finished},
		{"the last one taken", []fact{{10, 'r'}, {10, '+'}, {10, 'b'}, {90, '+'}, {300, 'd'}}, false, 380},
		{"and silence since", []fact{{10, 'r'}, {10, '+'}, {10, 'b'}, {90, '+'}, {300, 'd'}, {380, '+'}}, true, 460},
		{"new and empty: at once", []fact{{1, 'e'}}, true, 81},
		{"until a record", []fact{{1, 'e'}, {2, 'r'}, {3, '+'}}, false, 83},
		{"emptied by retention: not at once", []fact{{1, 'r'}, {2, 'e'}}, false, 82},
		{"empty but paused", []fact{{1, 'p'}, {2, 'e'}}, false, Finished},
		{"idle at the last commit, not yet proven", []fact{{0, 'R'}}, false, 10},
		{"proven: at once", []fact{{0, 'R'}, {4, '+'}}, true, 84},
		{"not proven: all over", []fact{{0, 'R'}, {4, '-'}, {5, '+'}}, false, 85},
		{"records came in between", []fact{{0, 'R'}, {4, 'r'}, {4, '+'}}, false, 84},
		{"too late to say so", []fact{{4, 'r'}, {5, 'R'}, {6, '+'}}, false, 86},
	} {
		i := NewIdleness(0, 80*time.Millisecond)
		now := int64(0)
		for _, f := range c.facts {
			f.tell(&i)
			now = f.at
		}
		if idle, next := i.Idle(now); idle != c.idle || next != c.next {
			t.Errorf("%s: %v, next %d, want %v, %d", c.name, idle, next, c.idle, c.next)
		}
	}
	i := NewIdleness(0, Never)
	i.Empty(1)
	if idle, next := i.Idle(2); idle || next != Finished {
		t.Errorf("never: %v, %d", idle, next)
	}
	i = NewIdleness(0, 1)
	if i.Probed(0, true); i.after != 1 {
		t.Errorf("time-out of less than 1 ms: %d", i.after)
	}
}

// WM-IDLE-BACKPRESSURE: p0 has 100 records waiting but is paused for a minute,
// p1 reaches 500 meanwhile. Once p0 goes on, none of its records is late.
func TestWMIdleBackpressure(t *testing.T) {
	s := settings(t, Ascending(), IdleAfter(10*time.Second))
	g0, g1 := s.New(), s.New()
	p0 := NewIdleness(0, s.IdleAfter)
	p0.Record(0)
	p0.Probed(0, true)
	p0.Buffered(0, true)
	p0.Paused(0, true)
	w := int64(Unknown)
	combine := func(now int64) {
		idle, next := p0.Idle(now)
		if idle || next != Finished {
			t.Fatalf("at %d: idle %v, next probe %d", now, idle, next)
		}
		w, _ = Combine(w, []Input{{W: g0.Watermark(), Idle: idle}, {W: g1.Watermark()}}, s.AllIdle, now, 0)
	}
	for now := int64(0); now <= 60000; now += 120 {
		g1.Observe(&Record{Time: now / 120})
		p0.Probed(now, true) // the log ends where we are
		combine(now)
	}
	for ts := int64(1); ts <= 100; ts++ {
		if ts <= w {
			t.Errorf("record %d is late at W %d", ts, w)
		}
		g0.Observe(&Record{Time: ts})
		combine(60000 + ts)
		if w > g0.Watermark() {
			t.Errorf("W %d is ahead of p0 at %d", w, g0.Watermark())
		}
	}
}

// W-LAG-ONE-PANE: a consumer slower than the records' own time does not split a
// minute, however far the clock is ahead.
func TestWLagOnePane(t *testing.T) {
	for _, perSecond := range []int64{1, 40, 1000} {
		s := settings(t, IdleAfter(time.Second), WhenAllIdle(AdvanceWithClock))
		g := s.New()
		now := int64(600_000)
		idle := NewIdleness(now, s.IdleAfter)
		idle.Record(now)
		idle.Probed(now, true)
		idle.Buffered(now, true)
		w := int64(Unknown)
		for n := range int64(321) {
			ts := n * 187 // 320 in the first minute
			if n == 320 {
				ts = 60_001
			}
			if ts < 60_000 && w >= 59_999 {
				t.Fatalf("%d/s: the minute is over at record %d", perSecond, n)
			}
			g.Observe(&Record{Time: ts})
			now += 1000 / perSecond
			silent, _ := idle.Idle(now)
			w, _ = Combine(w, []Input{{W: g.Watermark(), Idle: silent}}, s.AllIdle, now, 0)
		}
		if w != 60_000 {
			t.Errorf("%d/s: W %d", perSecond, w)
		}
	}
}

// naiveIdle applies the definition to the whole history.
func naiveIdle(facts []fact, after int64) bool {
	var since int64
	var paused, buffered, began, credit bool
	var proofs []int64
	for _, f := range facts {
		switch f.kind {
		case 'r':
			since, proofs, began, credit = f.at, nil, true, false
		case 'p':
			paused = true
		case 'g':
			if paused {
				since, proofs = f.at, nil
			}
			paused = false
		case 'b':
			buffered = true
		case 'd':
			if buffered {
				since = f.at
			}
			buffered = false
		case '-':
			proofs, credit = nil, false
		case 'R':
			credit = !began
		case '+', 'e':
			if f.kind == 'e' && !began {
				credit = true
			}
			if !paused {
				proofs = append(proofs, f.at)
			}
		}
	}
	if paused || buffered || len(proofs) == 0 {
		return false
	}
	return credit || proofs[len(proofs)-1] >= max(since, proofs[0])+after
}

func TestIdlenessTwin(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	idles := 0
	for n := range 5000 {
		const after = 80
		i := NewIdleness(0, after*time.Millisecond)
		var facts []fact
		if rng.IntN(4) == 0 {
			facts = append(facts, fact{0, 'R'})
			i.Resume()
		}
		now := int64(0)
		for range rng.IntN(25) {
			now += rng.Int64N(40)
			f := fact{now, "rpggbdd++++++++++-e"[rng.IntN(19)]}
			if f.kind == 'r' && rng.IntN(3) > 0 {
				f.kind = '+'
			}
			facts = append(facts, f)
			f.tell(&i)
			idle, next := i.Idle(now)
			if want := naiveIdle(facts, after); idle != want {
				t.Fatalf("seed %d, round %d: idle %v, want %v after %s", seed, n, idle, want, history(facts))
			}
			if idle {
				idles++
			}
			if (next == Finished) != (i.paused || i.buffered) {
				t.Fatalf("seed %d, round %d: next %d after %s", seed, n, next, history(facts))
			}
		}
		// Probes at the times asked for find the silence, soon after the time-out.
		for _, kind := range []byte{'g', 'd'} {
			fact{now, kind}.tell(&i)
		}
		for end := now + after + after/probes; ; {
			idle, next := i.Idle(now)
			if idle {
				break
			}
			if now = max(now, next); now > end {
				t.Fatalf("seed %d, round %d: not idle at %d after %s", seed, n, now, history(facts))
			}
			i.Probed(now, true)
		}
	}
	if idles < 1000 {
		t.Errorf("seed %d: idle only %d times, the test proves little", seed, idles)
	}
}

func history(facts []fact) (s string) {
	for _, f := range facts {
		s += fmt.Sprintf(" %d%c", f.at, f.kind)
	}
	return s
}

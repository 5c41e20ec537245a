package window

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// twin is the table of states and events written down as it stands, with everything stored: that a window fired on time,
// that it is closed, the value emitted last.
type twin struct {
	c      *Config
	w, now int64
	wins   []*twinWindow
	closed []Bounds // sessions that are forgotten, which the operator does not know any more
	out    []string
}

type twinWindow struct {
	b                          Bounds
	phase                      string // OPEN, LATE, CLOSED
	dirty, hasEmitted, lateAdd bool
	idx, ntIdx, count          int
	value, last, maxTime       int64
	earlyAt, lateAt            int64 // 0 not armed
}

func (x *twin) fire(n *twinWindow, t Timing, last bool) {
	c := x.c
	if t != TimingOnTime && !last && !c.emitAlways && c.Mode != ModeDiscarding && n.hasEmitted && n.last == n.value {
		n.dirty, n.count = false, 0
		return
	}
	p := Pane{Bounds: n.b, Timing: t, Index: n.idx, NonSpeculative: -1, First: n.idx == 0, Last: last, MaxTime: n.maxTime}
	n.idx++
	if t != TimingEarly {
		p.NonSpeculative = n.ntIdx
		n.ntIdx++
	}
	if c.Mode == ModeRetracting && n.hasEmitted {
		x.out = append(x.out, fmt.Sprintf("-%v=%d", n.b, n.last))
	}
	x.out = append(x.out, paneText(p, n.value))
	n.last, n.hasEmitted, n.dirty, n.count = n.value, true, false, 0
	if c.Mode == ModeDiscarding {
		n.value = 0
	}
}

func (x *twin) find(b Bounds) *twinWindow {
	for _, n := range x.wins {
		if n.b == b {
			return n
		}
	}
	return nil
}

func (x *twin) add(v, ts int64) {
	if x.c.Window.Kind() == KindSession {
		x.addSession(v, ts)
		return
	}
	for _, b := range x.c.Window.Assign(nil, ts) {
		n := x.find(b)
		if r := x.refuse(b); r != "" {
			x.out = append(x.out, fmt.Sprintf("side %s %v %d", r, b, ts))
			continue
		}
		if n == nil {
			n = &twinWindow{b: b, phase: "OPEN", maxTime: ts}
			if x.w >= b.End-1 {
				n.phase = "LATE"
			}
			x.wins = append(x.wins, n)
		}
		x.addTo(n, v, ts)
	}
}

func (x *twin) refuse(b Bounds) string {
	switch {
	case x.w >= b.End-1+x.c.lateness:
		return "expired"
	case x.w >= b.End-1 && x.c.late.never():
		return "late_suppressed"
	}
	return ""
}

func (x *twin) addTo(n *twinWindow, v, ts int64) {
	c := x.c
	n.value += v
	n.maxTime = max(n.maxTime, ts)
	n.count++
	was := n.dirty
	n.dirty = true
	if n.phase == "OPEN" {
		if c.early.count > 0 && n.count >= int(c.early.count) {
			x.fire(n, TimingEarly, false)
		} else if c.early.every > 0 && !was {
			n.earlyAt = c.Deadline(ArmEarly, x.now)
		}
		return
	}
	if c.late.count > 0 && n.count >= int(c.late.count) {
		x.fire(n, TimingLate, false)
	} else if c.late.every > 0 && (!was || !n.lateAdd) {
		n.lateAt = c.Deadline(ArmLate, x.now)
		n.earlyAt = 0
	}
	n.lateAdd = true
}

func (x *twin) addSession(v, ts int64) {
	proto := x.c.Window.Proto(ts)
	b := proto
	var old []*twinWindow
	closed := false
	for _, n := range x.wins {
		if proto.Start < n.b.End && n.b.Start < proto.End {
			old = append(old, n)
			b = Bounds{min(b.Start, n.b.Start), max(b.End, n.b.End)}
			closed = closed || n.phase == "CLOSED"
		}
	}
	r := x.refuse(b)
	if closed || x.w > ts+x.c.Window.Gap()-1+x.c.lateness {
		r = "expired"
	}
	if r != "" {
		x.out = append(x.out, fmt.Sprintf("side %s %v %d", r, b, ts))
		return
	}
	if len(old) == 1 && old[0].b == b {
		x.addTo(old[0], v, ts)
		return
	}
	slices.SortFunc(old, func(p, q *twinWindow) int { return byEnd(p.b, q.b) })
	m := &twinWindow{b: b, phase: "OPEN", maxTime: ts}
	if x.w >= b.End-1 {
		m.phase = "LATE"
	}
	for _, n := range old {
		if n.hasEmitted && x.c.Mode == ModeRetracting {
			x.out = append(x.out, fmt.Sprintf("-%v=%d", n.b, n.last))
		} else if n.hasEmitted {
			x.out = append(x.out, fmt.Sprintf("delete %v", n.b))
		}
		m.idx, m.ntIdx = max(m.idx, n.idx), max(m.ntIdx, n.ntIdx)
		m.count += n.count
		m.value += n.value
		m.maxTime = max(m.maxTime, n.maxTime)
		x.wins = slices.DeleteFunc(x.wins, func(o *twinWindow) bool { return o == n })
	}
	x.wins = append(x.wins, m)
	for _, n := range x.closed {
		if n.Intersects(b) {
			x.out = append(x.out, fmt.Sprintf("%v overlaps %v, which is closed", b, n))
		}
	}
	x.addTo(m, v, ts)
}

func (x *twin) sort() {
	slices.SortFunc(x.wins, func(p, q *twinWindow) int { return byEnd(p.b, q.b) })
}

func (x *twin) advance(w int64) {
	if w <= x.w {
		return
	}
	x.w = w
	x.sort()
	c := x.c
	for _, n := range x.wins {
		if n.phase == "OPEN" && w >= n.b.End-1 {
			n.phase = "LATE"
			last := w >= n.b.End-1+c.lateness
			switch {
			case c.onTime == Never:
			case n.dirty || !n.hasEmitted || c.emitAlways, c.onTime == Always:
				x.fire(n, TimingOnTime, last)
				if last {
					n.phase = "CLOSED"
				}
			}
			if c.onTime != Never {
				n.earlyAt = 0
			}
		}
		if n.phase == "LATE" && w >= n.b.End-1+c.lateness {
			switch {
			case c.onClose == Always, c.onClose == IfNew && n.dirty:
				x.fire(n, TimingLate, true)
			case n.dirty && n.count > 0:
				x.out = append(x.out, fmt.Sprintf("dropped %v %d", n.b, n.count))
			}
			n.phase = "CLOSED"
		}
	}
	x.wins = slices.DeleteFunc(x.wins, func(n *twinWindow) bool {
		gone := n.phase == "CLOSED" && w >= n.b.End-1+c.lateness+c.Window.Gap()
		if gone && c.Window.Kind() == KindSession {
			x.closed = append(x.closed, n.b)
		}
		return gone
	})
}

func (x *twin) clock(now int64) {
	x.now = max(x.now, now)
	x.sort()
	for _, n := range x.wins {
		if n.earlyAt != 0 && n.earlyAt <= x.now {
			n.earlyAt = 0
			switch {
			case n.phase == "OPEN" && n.dirty:
				x.fire(n, TimingEarly, false)
			case n.phase == "LATE" && n.dirty && x.c.onTime == Never:
				x.fire(n, TimingLate, false)
			}
		}
		if n.lateAt != 0 && n.lateAt <= x.now {
			n.lateAt = 0
			if n.phase == "LATE" && n.dirty {
				x.fire(n, TimingLate, false)
			}
		}
	}
}

func (x *twin) crash() {
	for _, n := range x.wins {
		n.earlyAt, n.lateAt = 0, 0
		switch {
		case !n.dirty || n.phase == "CLOSED":
		case n.phase == "LATE" && x.c.late.every > 0:
			n.lateAt = x.c.Deadline(ArmLate, x.now)
		case x.c.early.every > 0 && (n.phase == "OPEN" || x.c.onTime == Never):
			n.earlyAt = x.c.Deadline(ArmEarly, x.now)
		}
	}
}

// TestTwin compares the operator over Config and stored states with the twin on random histories.
func TestTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	panes := map[Timing]int{}
	for i := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, i))
		c := randomConfig(t, r)
		o, x := newOperator(t, c), &twin{c: c, w: minTime}
		o.eager = r.IntN(4) == 0
		var history []string
		for range 60 {
			event := randomEvent(r, o, x)
			history = append(history, event)
			if !slices.Equal(o.out, x.out) {
				t.Fatalf("seed %d, round %d\n%v\n%s\nhave\n%s\nwant\n%s", seed, i, c, strings.Join(history, "\n"),
					strings.Join(o.out, "\n"), strings.Join(x.out, "\n"))
			}
			for timing := range TimingLate + 1 {
				panes[timing] += strings.Count(strings.Join(o.out, "\n"), timing.String())
			}
			o.out, x.out = nil, nil
		}
	}
	for timing := range TimingLate + 1 {
		if panes[timing] < 500 {
			t.Errorf("seed %d: only %d panes %v", seed, panes[timing], timing)
		}
	}
}

func randomConfig(t *testing.T, r *rand.Rand) *Config {
	ms := time.Millisecond
	windows := []Window{Tumbling(10 * ms), Tumbling(7 * ms).Offset(-3 * ms), Hopping(10*ms, 5*ms), Hopping(10*ms, 4*ms),
		Cumulate(5*ms, 15*ms), Session(10 * ms), Session(4 * ms)}
	triggers := []Trigger{None(), None(), EachElement(), AfterCount(2), AfterCount(3), Every(400 * ms), EveryAligned(300 * ms),
		AnyOf(Every(500*ms), AfterCount(3))}
	pick := func() Trigger { return triggers[r.IntN(len(triggers))] }
	for {
		opts := []Option{AllowedLateness(time.Duration(r.IntN(4)) * 8 * ms), Early(pick()), OnTime(When(1 + r.IntN(3))),
			OnClose(When(1 + r.IntN(3))), []Option{Accumulating(), Discarding(), Retracting()}[r.IntN(3)]}
		if r.IntN(3) > 0 {
			opts = append(opts, Late(pick()))
		}
		if r.IntN(4) == 0 {
			opts = append(opts, EmitAlways())
		}
		if c, err := New(windows[r.IntN(len(windows))], opts...); err == nil {
			return &c
		} else if !strings.Contains(err.Error(), "no pane is ever emitted") {
			t.Fatal(err)
		}
	}
}

func randomEvent(r *rand.Rand, o *operator, x *twin) string {
	switch n := r.IntN(20); {
	case n < 11:
		v, ts := int64(r.IntN(3)), max(o.w, 0)+int64(r.IntN(45))-25
		o.add(v, ts)
		x.add(v, ts)
		return fmt.Sprintf("add %d %d", v, ts)
	case n < 15:
		w := max(o.w, -20) + int64(r.IntN(12))
		o.advance(w)
		x.advance(w)
		return fmt.Sprintf("watermark %d", w)
	case n < 19:
		now := o.now + int64(r.IntN(400))
		o.clock(now)
		x.clock(now)
		return fmt.Sprintf("clock %d", now)
	default:
		o.crash()
		x.crash()
		return "crash"
	}
}

package processor

// Tick is one run of a periodic callback, as the OnTick method of a custom processor gets it:
//
//	OnTick(out Emitter[K2, V2], t Tick) error
//
// What it emits has the time of the run and no headers. The embedded Context has no key and belongs to no record.
type Tick struct {
	*Context
	Time   int64 // processing time of the run, in ms
	Due    int64 // the point of the grid it is for, in ms; at most Time
	Missed int64 // points since that no run will come for
}

// period is a periodic callback. Its grid is the multiples of the period since 1970, so it does not move with restarts.
// A wake runs it once, however many points have passed.
type period struct {
	op   Op
	d    int64 // in ms
	due  int64 // the next point
	set  bool  // due is
	fire func(c *Context, t Tick) error
}

// NewPeriod makes the OnTick method of a processor be called every d ms.
func NewPeriod(s *Scope, d int64) { s.time.every = &period{op: s.op, d: d} }

// after returns the first point of the grid after t.
func (p *period) after(t int64) int64 {
	r := t % p.d
	if r < 0 {
		r += p.d
	}
	return satAdd(t-r, p.d)
}

func (p *period) run(c *Context, now int64) error {
	if !p.set {
		p.set, p.due = true, p.after(c.task.started)
	}
	if now < p.due {
		return nil
	}
	next := p.after(now)
	t := Tick{Time: now, Due: p.due, Missed: (next-p.due)/p.d - 1}
	p.due = next
	c.counters[p.op].MissedTicks += uint64(t.Missed)
	return p.fire(c, t)
}

// Hold is how a custom processor holds its watermark back.
type Hold struct{ s *Scope }

// NewHold lets a processor hold its watermark back.
func NewHold(s *Scope) Hold {
	s.time.hold = noHold
	s.time.node.hold = &s.time.hold
	return Hold{s}
}

// Set keeps what is behind the processor below t, in ms.
func (h Hold) Set(t int64) { h.change(t) }

// Release ends the hold.
func (h Hold) Release() { h.change(noHold) }

// Get returns the time held at and whether one is.
func (h Hold) Get() (int64, bool) { return h.s.time.hold, h.s.time.hold != noHold }

func (h Hold) change(t int64) {
	if h.s.time.hold != t {
		h.s.time.hold = t
		h.s.c.effects++ // it is part of what a commit keeps
		h.s.c.task.moved = true
	}
}

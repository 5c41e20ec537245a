package window

// minQuantum is the least distance of per-key deadlines in milliseconds.
const minQuantum = 100

// Deadline returns the wall clock time at which the deadline fires that a Decision asks for at now. An aligned one is
// the next multiple of the interval. Others are now plus the interval, rounded up to a multiple of a sixteenth of it,
// but of 100 ms at least, so that many keys share a deadline.
func (c *Config) Deadline(a Arm, now int64) int64 {
	t := &c.early
	if a == ArmLate {
		t = &c.late
	}
	if t.every == 0 {
		return maxTime
	}
	if t.aligned {
		return add(now, t.every-floorMod(now, t.every))
	}
	q := max(minQuantum, t.every/16)
	at := add(now, t.every)
	return add(at, floorMod(-floorMod(at, q), q))
}

// OnDeadline says what it means for the window that the deadline a has come while the watermark is w. A deadline of
// what is shown already means nothing. Nor does an early one of a window that is complete by now, except under
// OnTime(Never): there no on-time pane has shown what the deadline was set for, and a late pane does.
func (c *Config) OnDeadline(s *State, b Bounds, w int64, a Arm) Decision {
	var d Decision
	if c.Expired(b, w) {
		return d
	}
	d.Settled = c.settle(s, b, w)
	if s.Flags&Dirty == 0 {
		return d
	}
	switch past := c.Complete(b, w); {
	case a == ArmEarly && !past:
		c.firing(&d, s, TimingEarly, false)
	case past && (a == ArmLate || a == ArmEarly && c.onTime == Never):
		c.firing(&d, s, TimingLate, false)
	}
	return d
}

// Rearm returns the deadline that a stored state needs after deadlines, which are never stored, were lost.
func (c *Config) Rearm(s State, b Bounds, w int64) Arm {
	c.settle(&s, b, w)
	switch past := c.Complete(b, w); {
	case s.Flags&Dirty == 0 || c.Expired(b, w):
	case !past && c.early.every > 0:
		return ArmEarly
	case past && c.late.every > 0:
		return ArmLate
	case past && c.early.every > 0 && c.onTime == Never:
		return ArmEarly
	}
	return ArmNone
}

package window

// Add adds a record with the time ts to the window b, of which s is the state, while the watermark of the operator is
// w. It changes s unless the record is refused; the caller stores s with the value.
func (c *Config) Add(s *State, b Bounds, w, ts int64) Decision {
	var d Decision
	if d.Refuse = c.Refuses(b, w); d.Refuse != Accepted {
		return d
	}
	open := s.Flags&Past == 0
	d.Settled = c.settle(s, b, w)
	if !s.exists() || ts > s.MaxTime {
		s.MaxTime = ts
	}
	clean := s.Flags&Dirty == 0 || s.Flags&merged != 0
	s.Flags = s.Flags&^merged | Dirty
	if c.counts() && s.Count != 1<<32-1 {
		s.Count++
	}
	t, timing, arm := &c.early, TimingEarly, ArmEarly
	if c.Complete(b, w) {
		// A window that did not exist when the watermark reached its end has no on-time firing.
		s.Flags |= Past
		d.Late = true
		// An early deadline that is still set is not the one of this record.
		clean = clean || open
		t, timing, arm = &c.late, TimingLate, ArmLate
	}
	if t.count == 1 || t.count > 0 && s.Count >= t.count {
		c.firing(&d, s, timing, false)
	} else if clean && t.every > 0 {
		d.Arm = arm
	}
	return d
}

// counts reports whether the number of records since the last firing is of any use.
func (c *Config) counts() bool { return c.early.count > 1 || c.late.count > 1 || c.onClose == Never }

package window

// Hash returns the hash that tells whether an encoded value is the one emitted last (FNV-1a, 64 bits, with 0 replaced).
// It is stored, so it never changes.
func Hash(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	if h == 0 {
		return 1 // 0 in a State is no hash
	}
	return h
}

// NeedsHash reports whether Fire and settling need the hash of the emitted value. Otherwise the hash is of no use and
// can be given as 0.
func (c *Config) NeedsHash() bool {
	if c.emitAlways || c.Mode == ModeDiscarding {
		return false
	}
	return !c.early.never() || c.lateness > 0 && !c.late.never()
}

// Fire numbers the pane of a Decision that says so and changes the state accordingly; the caller then stores it, or
// drops it if the window was closed, or need not store it if the pane is on time (then s is better a copy). hash is that of the encoded value of
// the pane, 0 unless NeedsHash. ok is false for an early or late pane with the value that was emitted last: then
// neither the pane nor a retraction is emitted. Panes that are on time or the last are never suppressed, and neither are
// those of ModeDiscarding, whose values are differences: two equal ones are two.
func (c *Config) Fire(s *State, b Bounds, d Decision, w int64, hash uint64) (p Pane, ok bool) {
	if d.Timing != TimingOnTime && !d.Last && c.NeedsHash() && s.Flags&Emitted != 0 && s.Hash == hash {
		s.Flags &^= Dirty
		s.Count = 0
		return Pane{}, false
	}
	p = Pane{Bounds: b, Timing: d.Timing, Index: int(s.Panes), NonSpeculative: int(s.NonSpeculative), First: s.Panes == 0,
		Last: d.Last, Watermark: w, MaxTime: s.MaxTime}
	if d.Timing == TimingEarly {
		p.NonSpeculative = -1
	}
	s.emit(d.Timing)
	s.Hash = 0
	if c.NeedsHash() {
		s.Hash = hash
	}
	return p, true
}

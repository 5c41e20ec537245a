package window

// OnWatermark says what it means for the window that the watermark rises from prev to w: the on-time firing, closing,
// both or nothing. Callers ask for windows whose Last or Cleanup is in (prev, w]. Of a window that only fires s need
// not be stored.
func (c *Config) OnWatermark(s *State, b Bounds, prev, w int64) Decision {
	var d Decision
	d.Settled = c.settle(s, b, prev)
	if !s.exists() || !c.Complete(b, w) {
		return d
	}
	if s.Flags&Past == 0 && c.firesOnTime(s) {
		s.Flags |= Past
		d.Close = c.Expired(b, w)
		c.firing(&d, s, TimingOnTime, d.Close)
		return d
	}
	if !c.Expired(b, w) || c.Expired(b, prev) {
		return d
	}
	d.Close = true
	if c.onClose == Always || c.onClose == IfNew && s.Flags&Dirty != 0 {
		c.firing(&d, s, TimingLate, true)
	} else if s.Flags&Dirty != 0 {
		d.Dropped = s.Count
	}
	return d
}

package window

// Arm says which deadline the caller has to set for a window.
type Arm uint8

const (
	// ArmNone sets none; one that is set stays.
	ArmNone Arm = iota
	// ArmEarly sets the deadline of the early trigger.
	ArmEarly
	// ArmLate sets the deadline of the late trigger.
	ArmLate
)

// Decision says what an event means for a window. The caller carries it out in this order: Settled, Refuse, the fold of
// the record, Fire, Arm, Close.
type Decision struct {
	// Settled is set when the window fired on time since its state was last stored, so that its value as it was read is
	// the one shown last. Before anything is folded, ModeDiscarding empties the value, ModeRetracting takes it as the
	// last emitted one, and if NeedsHash, State.Hash is set to the hash of its encoding.
	Settled bool
	// Refuse is the reason why the record is not folded; Accepted if it is.
	Refuse Reason
	// Late is set for a record that is folded though the window is complete.
	Late bool
	// Fire is set when a pane is due, with Timing; Config.Fire has the last word.
	Fire   bool
	Timing Timing
	// Last is set when that pane is the last one.
	Last bool
	// Retract is set when the value shown last is to be retracted before the pane.
	Retract bool
	// Arm is the deadline to set, in place of one that is set already. See Config.Deadline.
	Arm Arm
	// Close is set when the window is closed: after the pane its value can be dropped.
	Close bool
	// Dropped counts the records of a closing window that no pane will ever show.
	Dropped uint32
}

// firing fills in a pane that is due.
func (c *Config) firing(d *Decision, s *State, t Timing, last bool) {
	d.Fire, d.Timing, d.Last = true, t, last
	d.Retract = c.Mode == ModeRetracting && s.Flags&Emitted != 0
}

// firesOnTime reports whether a window fires when the watermark reaches its end.
func (c *Config) firesOnTime(s *State) bool {
	switch c.onTime {
	case Always:
		return true
	case IfNew:
		return s.Flags&Dirty != 0 || s.Flags&Emitted == 0 || c.emitAlways
	}
	return false
}

// emit counts a pane in the state.
func (s *State) emit(t Timing) {
	s.Panes++
	if t != TimingEarly {
		s.NonSpeculative++
	}
	s.Count = 0
	s.Flags = s.Flags&^Dirty | Emitted
}

// settle brings a state up to the on-time firing of its window, if there was one. It reports whether it changed s. A
// window that did not fire is left as it is, as if the watermark had not yet reached its end.
func (c *Config) settle(s *State, b Bounds, w int64) bool {
	if s.Flags&Past != 0 || !s.exists() || !c.Complete(b, w) || !c.firesOnTime(s) {
		return false
	}
	s.emit(TimingOnTime)
	s.Flags |= Past
	return true
}

package window

// Absorbed says what is to be done about a session that became part of a longer one.
type Absorbed struct {
	// Settled is as in Decision: the value of the absorbed session as it was read is the one shown last.
	Settled bool
	// Emitted is set when a pane of the absorbed session stands downstream: it has to be retracted or deleted there,
	// since the longer session is another window.
	Emitted bool
}

// Merge makes the session from, with the bounds old, part of the session into, with the bounds b, while the watermark is
// w. into starts as the zero State; after all intersecting sessions are merged into it, Add adds the record that joins
// them. Before, the caller asks Refuses(b, w), and refuses as expired a record that would join a closed session, or may
// belong to one that is forgotten (see Forgotten and Forgets). A record inside a session, which leaves its bounds as they
// are, merges nothing.
//
// Pane numbers go on from the highest. If the watermark has not reached the end of the longer session, it will fire on
// time, even if those it absorbed have done so.
func (c *Config) Merge(into *State, b Bounds, from *State, old Bounds, w int64) Absorbed {
	var a Absorbed
	a.Settled = c.settle(from, old, w)
	a.Emitted = from.Flags&Emitted != 0
	if !into.exists() || from.MaxTime > into.MaxTime {
		into.MaxTime = from.MaxTime
	}
	into.Panes = max(into.Panes, from.Panes)
	into.NonSpeculative = max(into.NonSpeculative, from.NonSpeculative)
	into.Count += from.Count
	into.Flags |= from.Flags&Dirty | merged
	if c.Complete(b, w) {
		into.Flags |= Past
	}
	return a
}

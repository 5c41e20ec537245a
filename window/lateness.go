package window

// Reason says why a window refuses a record. The record then goes to the side output.
type Reason uint8

const (
	// Accepted is the reason of no refusal.
	Accepted Reason = iota
	// ReasonExpired is given when the watermark has passed the end of the window and the allowed lateness.
	ReasonExpired
	// ReasonLateSuppressed is given for a late record when the late trigger is None.
	ReasonLateSuppressed
)

// String returns the reason as it stands in the headers of the side output: "expired", "late_suppressed", or "".
func (r Reason) String() string {
	switch r {
	case ReasonExpired:
		return "expired"
	case ReasonLateSuppressed:
		return "late_suppressed"
	}
	return ""
}

// Complete reports whether no further record in time is expected for the window: w has reached its last millisecond.
func (c *Config) Complete(b Bounds, w int64) bool { return w != minTime && w >= b.Last() }

// Expired reports whether the window is closed: w has reached its last millisecond plus the allowed lateness. A window
// that is not bounded by time, and every window under lateness Forever, expires when the input is finished.
func (c *Config) Expired(b Bounds, w int64) bool { return w != minTime && w >= c.Cleanup(b) }

// Cleanup returns the watermark at which the window is closed.
func (c *Config) Cleanup(b Bounds) int64 {
	if c.lateness == maxTime {
		return maxTime
	}
	return add(b.Last(), c.lateness)
}

// Forgotten returns the watermark at which the row of the window can be removed. It is Cleanup, except for sessions:
// a closed session has to be remembered for another gap, in which a record may still come that is not expired by
// itself but belongs to it. Such a record is refused as expired, because what was promised to be the last pane of a
// session stays the last, and no two sessions of a key overlap.
func (c *Config) Forgotten(b Bounds) int64 { return add(c.Cleanup(b), c.Window.Gap()) }

// Forgets reports whether a closed session that a record belongs to may be forgotten at w; proto is the session the record
// makes on its own. Such a record is refused as expired, even if it would join a session that is not: the session it
// makes would overlap the one that is forgotten.
func (c *Config) Forgets(proto Bounds, w int64) bool { return w > c.Cleanup(proto) }

// CompleteEnd returns the end up to which (inclusive) windows are complete at w.
func (c *Config) CompleteEnd(w int64) int64 { return endUpTo(w, 0) }

// ExpiredEnd returns the end up to which (inclusive) windows are closed at w.
func (c *Config) ExpiredEnd(w int64) int64 { return endUpTo(w, c.lateness) }

// ForgottenEnd returns the end up to which (inclusive) the rows of windows can be removed at w: the floor of a store
// ordered by end, plus one.
func (c *Config) ForgottenEnd(w int64) int64 { return endUpTo(w, add(c.lateness, c.Window.Gap())) }

// endUpTo solves End-1+d <= w for the largest End.
func endUpTo(w, d int64) int64 {
	switch {
	case w == maxTime:
		return maxTime
	case d == maxTime || w == minTime || w < minTime+d:
		return minTime
	}
	return w - d + 1
}

// Refuses reports why a record that belongs to the window b is not accepted at w, which under Origin is the watermark
// of the record's source partition and else that of the operator. For sessions b is the session that would result.
func (c *Config) Refuses(b Bounds, w int64) Reason {
	switch {
	case c.Expired(b, w):
		return ReasonExpired
	case c.late.never() && c.Complete(b, w):
		return ReasonLateSuppressed
	}
	return Accepted
}

// LateBy returns by how many milliseconds w is past the last millisecond of the window, 0 if it is not.
func (c *Config) LateBy(b Bounds, w int64) int64 { return max(0, sub(w, b.Last())) }

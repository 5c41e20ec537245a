// Package window says which windows a record belongs to, when a window is complete, and which results of it are shown
// when: windows, triggers, accumulation, allowed lateness and panes.
//
// Everything here is a pure function of its arguments. The package never reads a clock, never starts a goroutine, never
// does input or output, and keeps nothing between calls: watermarks and wall clock times are arguments, and what has to
// be remembered of one window of one key is a State that the caller stores. Values of this package may be used by many
// goroutines at once; a State belongs to whoever holds it.
//
// All times are milliseconds since the epoch, windows are half-open, and a watermark W means that no further record
// with a time of W or less is expected, so that the window [s, e) is complete when W >= e-1. The smallest int64 is the
// watermark of who knows nothing yet, the largest one that of a finished input. Arithmetic saturates at both ends.
package window

import (
	"errors"
	"time"

	// The zones of calendar windows must be known on machines that have no zone files.
	_ "time/tzdata"
)

var (
	// ErrInvalid marks a window, a trigger or a combination of options that has no meaning.
	ErrInvalid = errors.New("invalid")
	// ErrMalformed marks bytes that are not an encoding of this package.
	ErrMalformed = errors.New("malformed")
)

// Kind is a kind of window. The numbers are never changed.
type Kind uint8

// The kinds of windows. The zero Kind is that of the zero Window, which is invalid.
const (
	KindTumbling Kind = iota + 1
	KindHopping
	KindSliding
	KindSession
	KindGlobal
	KindDay
	KindWeek
	KindMonth
	KindQuarter
	KindYear
	KindCumulate
)

var kindNames = [...]string{"no window", "tumbling", "hopping", "sliding", "session", "global", "day", "week", "month", "quarter", "year", "cumulate"}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown window"
}

// Window is a kind of window with its parameters. The zero Window is invalid. A Window is a small value, and its
// methods may be called by many goroutines at once. What a constructor refuses is found by Err; the other methods of an
// invalid Window assign nothing.
type Window struct {
	kind Kind
	size int64 // length of a window; gap of a session; the difference of a sliding window; max of cumulate
	hop  int64 // distance of starts; step of cumulate
	off  int64 // offset of the alignment, from 0 to the distance of starts
	cal  *calendar
	err  error
}

// Tumbling returns windows of the given size that follow each other without gaps, aligned to the epoch.
func Tumbling(size time.Duration) Window {
	w := Window{kind: KindTumbling}
	w.size = w.millis("size", size, 1)
	w.hop = w.size
	return w
}

// Hopping returns windows of the given size that start every hop, aligned to the epoch: a record belongs to about
// size/hop of them. With a hop longer than the size there are gaps, and records in a gap belong to no window (see
// Warning). Other systems call these windows sliding.
func Hopping(size, hop time.Duration) Window {
	w := Window{kind: KindHopping}
	w.size = w.millis("size", size, 1)
	w.hop = w.millis("hop", hop, 1)
	return w
}

// Sliding returns the sliding windows of Kafka Streams: for every record time t of a key the window [t-diff, t], and
// [t+1, t+1+diff] if it holds a record, with both ends inclusive. As Bounds they are half-open, so one millisecond
// longer than diff. diff may be zero. See Left, Right and Affected.
func Sliding(diff time.Duration) Window {
	w := Window{kind: KindSliding}
	w.size = w.millis("difference", diff, 0)
	return w
}

// Session returns windows that grow with the activity of a key: a record at ts makes [ts, ts+gap), and windows that
// intersect are one. Records exactly gap apart are in different sessions. Kafka Streams joins them: its inactivity gap
// g is Session(g + time.Millisecond) here.
func Session(gap time.Duration) Window {
	w := Window{kind: KindSession}
	w.size = w.millis("gap", gap, 1)
	return w
}

// Global returns the one window that holds all time. It is complete when its input is finished, so it needs an early
// trigger to show anything before.
func Global() Window { return Window{kind: KindGlobal} }

// Cumulate returns windows that grow by step until they are max long and then start again, as SQL's CUMULATE: a
// record belongs to the smallest one that holds it and all larger ones. max must be a multiple of step.
func Cumulate(step, max time.Duration) Window {
	w := Window{kind: KindCumulate}
	w.hop = w.millis("step", step, 1)
	w.size = w.millis("maximum", max, 1)
	if w.kind != 0 && w.size%w.hop != 0 {
		w.fail("the maximum %v is not a multiple of the step %v", max, step)
	}
	return w
}

// Offset shifts the alignment of tumbling, hopping and cumulating windows: starts are at multiples of the hop (of the
// size, of the maximum) plus d. d may be negative but must be shorter than the size. Other windows have no alignment
// to shift, and the result is invalid.
func (w Window) Offset(d time.Duration) Window {
	w.off = w.millis("offset", d, minDuration)
	switch w.kind {
	case KindTumbling, KindHopping, KindCumulate:
		if w.off <= -w.size || w.off >= w.size {
			w.fail("offset %v is not shorter than %v", d, dur(w.size))
			return w
		}
		// Offsets that give the same windows are the same.
		w.off = floorMod(w.off, w.grid())
	default:
		w.fail("%s windows have no offset", w.kind)
	}
	return w
}

// Kind returns the kind of the window.
func (w Window) Kind() Kind { return w.kind }

// Size returns the length of a window in milliseconds: of the longest one for cumulating windows, the difference plus
// one for sliding windows, and 0 for those without a fixed length.
func (w Window) Size() int64 {
	switch w.kind {
	case KindTumbling, KindHopping, KindCumulate:
		return w.size
	case KindSliding:
		return w.size + 1
	}
	return 0
}

// Hop returns the distance of the starts of tumbling and hopping windows in milliseconds, the step of cumulating ones, and
// 0 for other kinds.
func (w Window) Hop() int64 { return w.hop }

// Shift returns how far the alignment of the windows is shifted in milliseconds, see Offset: from 0 to the distance of
// their starts.
func (w Window) Shift() int64 { return w.off }

// Gap returns the gap of a session window in milliseconds, 0 for other kinds.
func (w Window) Gap() int64 {
	if w.kind != KindSession {
		return 0
	}
	return w.size
}

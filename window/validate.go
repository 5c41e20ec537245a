package window

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const minDuration = math.MinInt64

// millis converts a parameter to milliseconds and refuses what is not a whole number of them or below the minimum. It
// keeps the first refusal.
func (w *Window) millis(what string, d time.Duration, least int64) int64 {
	if d%time.Millisecond != 0 {
		w.fail("%s %v is not a whole number of milliseconds", what, d)
	}
	n := d.Milliseconds()
	if n < least {
		w.fail("%s %v is too short", what, d)
	}
	return n
}

// fail makes the window invalid. An invalid window has no kind, so that its methods need no further check.
func (w *Window) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("window: %s: %s: %w", w.kind, fmt.Sprintf(format, args...), ErrInvalid)
	}
	w.kind = 0
}

// Err returns why the window cannot be used, or nil. The error is an ErrInvalid.
func (w Window) Err() error {
	switch {
	case w.err != nil:
		return w.err
	case w.kind == 0:
		return fmt.Errorf("window: no window: %w", ErrInvalid)
	}
	return nil
}

// Warning returns what is probably not meant, as a sentence without a period, or "".
func (w Window) Warning() string {
	var s []string
	if w.kind == KindHopping && w.hop > w.size {
		s = append(s, fmt.Sprintf("the hop %v is longer than the size %v: records in the gaps belong to no window", dur(w.hop), dur(w.size)))
	}
	if w.kind == KindHopping && w.hop < w.size && w.size%w.hop != 0 {
		s = append(s, fmt.Sprintf("the hop %v does not divide the size %v: records belong to different numbers of windows", dur(w.hop), dur(w.size)))
	}
	return strings.Join(s, "; ")
}

// String returns the canonical description of the window, which belongs in fingerprints: two windows with the same
// description assign every record alike. For calendar windows it has the name of the zone and a checksum of its rules
// (see Rules).
func (w Window) String() string {
	var s string
	switch w.kind {
	case 0:
		return w.Err().Error()
	case KindGlobal:
		return "global"
	case KindHopping:
		s = fmt.Sprintf("hopping %v every %v", dur(w.size), dur(w.hop))
	case KindCumulate:
		s = fmt.Sprintf("cumulate %v up to %v", dur(w.hop), dur(w.size))
	case KindTumbling, KindSession, KindSliding:
		s = fmt.Sprintf("%s %v", w.kind, dur(w.size))
	default:
		return w.cal.String()
	}
	if w.off != 0 {
		s += fmt.Sprintf(" offset %v", dur(w.off))
	}
	return s
}

// grid returns the distance of aligned starts.
func (w Window) grid() int64 {
	switch w.kind {
	case KindTumbling, KindHopping:
		return w.hop
	case KindCumulate:
		return w.size
	}
	return 0
}

// dur returns milliseconds as a duration.
func dur(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

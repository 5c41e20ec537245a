package window

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Trigger says when the value of a window is shown besides the moment it is complete. The zero Trigger is None. What is
// wrong with a trigger is an error of New.
type Trigger struct {
	every   int64 // ms of wall clock time, 0 never
	aligned bool
	count   uint32 // elements since the last firing, 0 never
	err     error
}

// None never fires. As a late trigger it refuses late records: they go to the side output as ReasonLateSuppressed.
func None() Trigger { return Trigger{} }

// EachElement fires with every record.
func EachElement() Trigger { return Trigger{count: 1} }

// AfterCount fires when n records have been added since the last firing. n must be at least 1.
func AfterCount(n int) Trigger {
	if n < 1 || n > math.MaxUint32 {
		return Trigger{err: fmt.Errorf("window: trigger: count %d: %w", n, ErrInvalid)}
	}
	return Trigger{count: uint32(n)}
}

// Every fires d of wall clock time after the first record that no firing has shown, separately for every key, so that
// the firings of many keys are spread. d must be a whole number of milliseconds, at least one. Deadlines are rounded up
// (see Config.Deadline).
func Every(d time.Duration) Trigger { return clockTrigger(d, false) }

// EveryAligned fires at multiples of d of wall clock time since the epoch: all keys together.
func EveryAligned(d time.Duration) Trigger { return clockTrigger(d, true) }

func clockTrigger(d time.Duration, aligned bool) Trigger {
	if d <= 0 || d%time.Millisecond != 0 {
		return Trigger{err: fmt.Errorf("window: trigger: every %v is not a positive number of milliseconds: %w", d, ErrInvalid)}
	}
	return Trigger{every: d.Milliseconds(), aligned: aligned}
}

// AnyOf fires when one of the triggers does. Of counts the smallest is kept; of Every and EveryAligned there may be
// only one.
func AnyOf(ts ...Trigger) Trigger {
	var r Trigger
	for _, t := range ts {
		switch {
		case r.err != nil:
		case t.err != nil:
			r.err = t.err
		case t.every > 0 && r.every > 0:
			r.err = fmt.Errorf("window: trigger: two intervals in one trigger: %w", ErrInvalid)
		}
		if t.every > 0 {
			r.every, r.aligned = t.every, t.aligned
		}
		if t.count > 0 && (r.count == 0 || t.count < r.count) {
			r.count = t.count
		}
	}
	if len(ts) == 0 {
		r.err = fmt.Errorf("window: trigger: any of nothing: %w", ErrInvalid)
	}
	return r
}

// never reports whether the trigger is None.
func (t Trigger) never() bool { return t.every == 0 && t.count == 0 }

// String returns the canonical description: "none", "each element", "every 10s or after 100".
func (t Trigger) String() string {
	var s []string
	if t.every > 0 {
		d := "every " + dur(t.every).String()
		if t.aligned {
			d += " aligned"
		}
		s = append(s, d)
	}
	switch {
	case t.count == 1:
		s = append(s, "each element")
	case t.count > 1:
		s = append(s, fmt.Sprintf("after %d", t.count))
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, " or ")
}

package window

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Forever as the allowed lateness keeps windows open until the input is finished.
const Forever = time.Duration(math.MaxInt64)

// When says under which condition a pane that does not come from a trigger is emitted.
type When uint8

const (
	// IfNew emits if there is something no pane has shown yet.
	IfNew When = iota + 1
	// Always emits even if nothing is new.
	Always
	// Never does not emit.
	Never
)

// String returns "if new", "always" or "never".
func (w When) String() string {
	switch w {
	case IfNew:
		return "if new"
	case Always:
		return "always"
	case Never:
		return "never"
	}
	return fmt.Sprintf("when %d", uint8(w))
}

// Mode says what the value of a pane is.
type Mode uint8

const (
	// ModeAccumulating shows the whole value of the window so far.
	ModeAccumulating Mode = iota
	// ModeDiscarding shows what was added since the last pane.
	ModeDiscarding
	// ModeRetracting shows the whole value, preceded by a retraction of the value shown last.
	ModeRetracting
)

// String returns "accumulating", "discarding" or "retracting".
func (m Mode) String() string {
	switch m {
	case ModeAccumulating:
		return "accumulating"
	case ModeDiscarding:
		return "discarding"
	case ModeRetracting:
		return "retracting"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Config is a window with everything that decides about its panes. Make one with New; it never changes after that and
// may be used by many goroutines.
type Config struct {
	// Window is the kind of window.
	Window Window
	// Mode says what the value of a pane is.
	Mode Mode

	lateness   int64
	early      Trigger
	late       Trigger
	lateGiven  bool
	onTime     When
	onClose    When
	emitAlways bool
	origin     bool
}

// Option changes a Config from its defaults.
type Option func(*Config) error

// New returns the configuration of w. Without options there is one pane per window, when the watermark has reached its
// end, and nothing is accepted afterwards. All errors are ErrInvalid and are returned at once.
func New(w Window, opts ...Option) (Config, error) {
	c := Config{Window: w, late: EachElement(), onTime: Always, onClose: IfNew}
	errs := []error{w.Err()}
	for _, o := range opts {
		errs = append(errs, o(&c))
	}
	if c.early.never() && c.onTime == Never && c.onClose == Never && (c.lateness == 0 || c.late.never()) {
		errs = append(errs, fmt.Errorf("window: no pane is ever emitted: %w", ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// AllowedLateness accepts records until the watermark has passed the end of the window by d. Default 0; Forever is
// allowed.
func AllowedLateness(d time.Duration) Option {
	return func(c *Config) error {
		switch {
		case d == Forever:
			c.lateness = maxTime
		case d < 0 || d%time.Millisecond != 0:
			return fmt.Errorf("window: allowed lateness %v is negative or not a whole number of milliseconds: %w", d, ErrInvalid)
		default:
			c.lateness = d.Milliseconds()
		}
		return nil
	}
}

// Early shows the value of a window before it is complete. Default None.
func Early(t Trigger) Option { return func(c *Config) error { c.early = t; return t.err } }

// Late says when late records that are accepted show. Default EachElement.
func Late(t Trigger) Option {
	return func(c *Config) error { c.late, c.lateGiven = t, true; return t.err }
}

// OnTime says whether the window emits when the watermark has reached its end. Default Always: a consumer sees that the
// window is complete even if the last early pane had the same value. Windows without data do not exist and never emit.
func OnTime(w When) Option {
	return func(c *Config) error { c.onTime = w; return w.check() }
}

// OnClose says whether the window emits when it is closed, with a pane that is marked as the last one. Default IfNew. A
// window that emitted its on-time pane in the same moment is closed by that.
func OnClose(w When) Option {
	return func(c *Config) error { c.onClose = w; return w.check() }
}

func (w When) check() error {
	if w < IfNew || w > Never {
		return fmt.Errorf("window: %s: %w", w, ErrInvalid)
	}
	return nil
}

// EmitAlways emits early and late panes even if their value is the one emitted last. Without it they are suppressed.
func EmitAlways() Option { return func(c *Config) error { c.emitAlways = true; return nil } }

// Accumulating sets ModeAccumulating, the default.
func Accumulating() Option { return func(c *Config) error { c.Mode = ModeAccumulating; return nil } }

// Discarding sets ModeDiscarding.
func Discarding() Option { return func(c *Config) error { c.Mode = ModeDiscarding; return nil } }

// Retracting sets ModeRetracting.
func Retracting() Option { return func(c *Config) error { c.Mode = ModeRetracting; return nil } }

// Origin judges whether a record is too late by the watermark that its own source partition had when it was read, so
// that which records are refused does not depend on how partitions interleave. Without it the watermark of the operator
// decides, which is never ahead of that and so accepts more.
func Origin() Option { return func(c *Config) error { c.origin = true; return nil } }

// ByOrigin reports whether the configuration was made with Origin.
func (c *Config) ByOrigin() bool { return c.origin }

// Lateness returns the allowed lateness in milliseconds, the largest int64 for Forever.
func (c *Config) Lateness() int64 { return c.lateness }

// Triggers describes when panes show: what a topology may change at any time.
func (c *Config) Triggers() string {
	s := "early " + c.early.String() + "; late " + c.late.String() + "; on time " + c.onTime.String() + "; on close " + c.onClose.String()
	if c.emitAlways {
		s += "; emit always"
	}
	if c.origin {
		s += "; origin"
	}
	return s
}

// ShowsOnce reports whether every window shows exactly one pane, when it is complete, and takes no record afterwards: what a
// window holds is then of no interest before.
func (c *Config) ShowsOnce() bool {
	return c.lateness == 0 && c.early.never() && c.onTime != Never && !c.origin
}

// String returns the canonical description of everything in the configuration.
func (c *Config) String() string {
	return c.StateString() + "; lateness " + c.latenessString() + "; " + c.Triggers()
}

// StateString describes what the stored state of a window depends on. State written under one configuration can be read
// under another one if these are equal: lateness and triggers may change. Whether windows fire on time matters if what
// they emitted is part of the state, because that firing leaves no trace of its own.
func (c *Config) StateString() string {
	s := c.Window.String() + "; " + c.Mode.String()
	if c.onTime == Never && c.Mode != ModeAccumulating {
		s += "; never on time"
	}
	return s
}

func (c *Config) latenessString() string {
	if c.lateness == maxTime {
		return "forever"
	}
	return dur(c.lateness).String()
}

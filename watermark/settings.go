package watermark

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

const (
	// DefaultIdleAfter is how long a partition must be silent to be idle.
	DefaultIdleAfter = time.Minute
	// DefaultMaxDrift is how far a partition may be ahead of the slowest one.
	DefaultMaxDrift = 5 * time.Minute
	// Never, given to IdleAfter or Align, switches the rule off.
	Never = time.Duration(-1)
)

// Settings say how the event time of one source is handled. New makes them and
// fills in the defaults; they are not changed afterwards.
type Settings struct {
	// Name of the strategy with its parameters: "bounded out-of-orderness 30s".
	Name string
	// New makes the generator of one partition.
	New func() Generator
	// NeedsValue says that generators look at decoded values of type ValueType.
	NeedsValue bool
	// ValueType is the type of value the generators take, nil for any.
	ValueType reflect.Type
	// Max combines the partitions by maximum, as Kafka Streams' stream time.
	Max bool
	// Delay is how far W stays behind the highest time; AdvanceWithClock stays as
	// far behind the clock. Zero or more, whole milliseconds.
	Delay time.Duration
	// IdleAfter is how long a partition must be silent to be idle; negative for never.
	IdleAfter time.Duration
	// MaxFuture is how far a record's time may be ahead of the clock; zero for any distance.
	MaxFuture time.Duration
	// MaxDrift is how far a partition may be ahead of the slowest one before it
	// is paused; negative for any distance.
	MaxDrift time.Duration
	// AllIdle is what happens to W when all inputs are idle.
	AllIdle AllIdle
	// Missing is what happens to a record without timestamp.
	Missing Missing
}

// OptionError reports an option that cannot be what was meant.
type OptionError struct {
	Option string // the function that made it: "OutOfOrderness"
	Reason string
}

func (e *OptionError) Error() string { return "watermark: " + e.Option + ": " + e.Reason }

// builder collects options.
type builder struct {
	Settings
	strategies []string
	clock      bool // Delay is known, so W can follow the clock
	errs       []error
}

func (b *builder) fail(option, format string, args ...any) {
	b.errs = append(b.errs, &OptionError{option, fmt.Sprintf(format, args...)})
}

// whole checks that d is a number of milliseconds, the unit of event time.
func (b *builder) whole(option string, d time.Duration) {
	if d >= 0 && d%time.Millisecond != 0 {
		b.fail(option, "%v is not a whole number of milliseconds", d)
	}
}

// New makes settings from a strategy, OutOfOrderness(0) if none is given, and
// from settings, of which the last of a kind counts. The error joins an
// *OptionError for everything that is wrong.
func New(opts ...Option) (Settings, error) {
	b := builder{Settings: Settings{IdleAfter: DefaultIdleAfter, MaxDrift: DefaultMaxDrift}}
	for _, o := range opts {
		if o == nil {
			b.fail("New", "an option is nil")
			continue
		}
		o.apply(&b)
	}
	switch len(b.strategies) {
	case 0:
		OutOfOrderness(0).apply(&b)
	case 1:
	default:
		b.fail(strings.Join(b.strategies, ", "), "a source has one strategy, not %d", len(b.strategies))
	}
	if b.AllIdle == AdvanceWithClock && !b.clock {
		b.fail("WhenAllIdle", "AdvanceWithClock needs a strategy with a known delay, such as OutOfOrderness")
	}
	if b.AllIdle != Stay && b.IdleAfter < 0 {
		b.fail("WhenAllIdle", "%v has no effect where IdleAfter is Never", b.AllIdle)
	}
	if len(b.errs) > 0 {
		return Settings{}, errors.Join(b.errs...)
	}
	return b.Settings, nil
}

// String describes the settings, the same way in every build.
func (s Settings) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	part := func(name string, d time.Duration) {
		if d < 0 {
			fmt.Fprintf(&b, ", %s never", name)
			return
		}
		fmt.Fprintf(&b, ", %s %v", name, d)
	}
	part("idle after", s.IdleAfter)
	if s.MaxFuture > 0 {
		part("max future", s.MaxFuture)
	}
	part("align", s.MaxDrift)
	fmt.Fprintf(&b, ", all idle: %v, no timestamp: %v", s.AllIdle, s.Missing)
	return b.String()
}

package watermark

import (
	"reflect"
	"time"
)

// Option is a strategy or a setting for New. A source has one strategy.
type Option interface{ apply(b *builder) }

type option func(b *builder)

func (o option) apply(b *builder) { o(b) }

// strategy is an option that says where W comes from.
func strategy(name string, set func(b *builder)) Option {
	return option(func(b *builder) {
		b.strategies = append(b.strategies, name)
		b.clock = false
		set(b)
	})
}

// Ascending is the strategy for partitions whose times never fall: W is 1 ms
// below the highest time. A record that is older than another is late.
func Ascending() Option {
	return strategy("Ascending", func(b *builder) {
		b.Name, b.clock = "ascending", true
		b.New = func() Generator { return newHighest(0, false) }
	})
}

// OutOfOrderness is the strategy for records that come up to delay later than
// younger ones: W is delay and 1 ms below the highest time. The default, with 0.
func OutOfOrderness(delay time.Duration) Option {
	return strategy("OutOfOrderness", func(b *builder) {
		b.Name, b.clock, b.Delay = "bounded out-of-orderness "+delay.String(), true, delay
		if delay < 0 {
			b.fail("OutOfOrderness", "negative delay %v", delay)
		}
		b.whole("OutOfOrderness", delay)
		b.New = func() Generator { return newHighest(delay.Milliseconds(), false) }
	})
}

// Punctuated is the strategy for streams with markers: when fn returns true,
// no further record with the time it returns, or an older one, is expected. fn
// must be a pure function; name stands for it in descriptions.
func Punctuated[V any](name string, fn func(v V) (time.Time, bool)) Option {
	return strategy("Punctuated", func(b *builder) {
		if name == "" || fn == nil {
			b.fail("Punctuated", "needs a name and a function")
		}
		b.Name, b.NeedsValue, b.ValueType = "punctuated "+name, true, reflect.TypeFor[V]()
		b.New = func() Generator {
			return &punctuated[V]{position: position{Unknown, Unknown}, name: name, fn: fn}
		}
	})
}

// Custom is a strategy of the caller's own: generate makes one generator per
// partition. New calls it once to see that it makes one. A watermark that falls
// is held where it was. Generators see no decoded value.
func Custom(name string, generate func() Generator) Option {
	return strategy("Custom", func(b *builder) {
		switch {
		case name == "" || generate == nil:
			b.fail("Custom", "needs a name and a function")
		default:
			if g := generate(); g == nil {
				b.fail("Custom", "%s makes a nil generator", name)
			} else if n := len(g.Append(nil)); n > MaxState {
				b.fail("Custom", "the state of %s has %d bytes, more than %d", name, n, MaxState)
			}
		}
		b.Name = "custom " + name
		b.New = func() Generator {
			return &custom{position: position{Unknown, Unknown}, name: name, g: generate()}
		}
	})
}

// AppendTime is the strategy for topics whose records are stamped by the
// broker: W is 1 ms below the highest time of appending.
func AppendTime() Option {
	return strategy("AppendTime", func(b *builder) {
		b.Name, b.clock = "append time", true
		b.New = func() Generator { return newHighest(0, true) }
	})
}

// FromHeader is the strategy for topics whose records carry the watermark of
// the application that wrote them, as AppendHeader encodes it, under key.
func FromHeader(key string) Option {
	return strategy("FromHeader", func(b *builder) {
		if key == "" {
			b.fail("FromHeader", "needs a header key")
		}
		b.Name = "header " + key
		b.New = func() Generator { return &fromHeader{position: position{Unknown, Unknown}, key: key} }
	})
}

// StreamTime is the strategy of Kafka Streams: time is the highest seen in any
// partition, and none holds it back. What counts as late then depends on the
// order in which partitions are read.
func StreamTime() Option {
	return strategy("StreamTime", func(b *builder) {
		b.Name, b.Max, b.clock = "stream time", true, true
		b.New = func() Generator { return newHighest(0, false) }
	})
}

// IdleAfter sets how long a partition must be silent before the others go on
// without it: DefaultIdleAfter for 0, Never for a negative d.
func IdleAfter(d time.Duration) Option {
	return option(func(b *builder) {
		b.whole("IdleAfter", d)
		if b.IdleAfter = max(d, Never); d == 0 {
			b.IdleAfter = DefaultIdleAfter
		}
	})
}

// MaxFuture sends records whose time is more than d ahead of the clock to the
// late output, where they do not move W. 0, the default, lets all pass. The
// rule reads the clock, so a replay may judge otherwise.
func MaxFuture(d time.Duration) Option {
	return option(func(b *builder) {
		if d < 0 {
			b.fail("MaxFuture", "negative distance %v", d)
		}
		b.whole("MaxFuture", d)
		b.MaxFuture = d
	})
}

// Align sets how far a partition may be ahead of the slowest one before it is
// paused: DefaultMaxDrift for 0, any distance for a negative d.
func Align(d time.Duration) Option {
	return option(func(b *builder) {
		b.whole("Align", d)
		if b.MaxDrift = max(d, Never); d == 0 {
			b.MaxDrift = DefaultMaxDrift
		}
	})
}

// WhenAllIdle sets what happens to W when all inputs are idle. The default is Stay.
func WhenAllIdle(a AllIdle) Option {
	return option(func(b *builder) {
		if a > AdvanceWithClock {
			b.fail("WhenAllIdle", "no rule %d", a)
		}
		b.AllIdle = a
	})
}

// OnMissing sets what happens to a record without timestamp. The default is Fail.
func OnMissing(m Missing) Option {
	return option(func(b *builder) {
		if m > PartitionTime {
			b.fail("OnMissing", "no policy %d", m)
		}
		b.Missing = m
	})
}

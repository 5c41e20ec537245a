package processor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/watermark"
)

// ErrNoMethod says that a custom processor lists timers without an OnTimer method of the right types, or a period without
// OnTick.
var ErrNoMethod = errors.New("method is missing")

// ErrTimerLoop says that timers set timers that are due at once, a million times without an end.
var ErrTimerLoop = errors.New("timers that are due at once set each other without end")

const (
	// maxAgain is how many timers may be set in one advance that fire in the same.
	maxAgain = 1_000_000
	// maxPerTick is how many timers of processing time fire, and how many rows are swept, in one Tick.
	maxPerTick = 10_000
)

// noHold is the hold of a processor that does not hold its watermark.
const noHold = math.MaxInt64

// customTime is what a custom processor does when time passes: its timers fire, its period comes round, and what its
// stores keep for a while is dropped. In an advance, timers come before that.
type customTime struct {
	op         Op
	node       *Node // nil if it has none
	event      *timers
	processing *timers
	every      *period
	sweeps     []sweep
	wallSweeps []func(c *Context, now int64) (next int64, err error)
	hold       int64
	firing     bool // an advance fires timers
	sets       int  // timers set in this advance that fire in it
}

// sweep drops what a watermark makes useless. It stops when the budget is used up.
type sweep struct {
	advance func(c *Context, w int64, left *budget) (done bool, err error)
	close   func() error // may be nil
}

// ticking reports whether processing time concerns the processor.
func (o *customTime) ticking() bool {
	return o.processing != nil || o.every != nil || len(o.wallSweeps) > 0
}

// due implements fires: to look costs nothing.
func (o *customTime) due() int64 { return math.MinInt64 }

// advance implements fires.
func (o *customTime) advance(c *Context, w int64, left *budget) (bool, error) {
	if o.event != nil {
		o.firing = true
		done, err := o.event.fireDue(c, w, left)
		o.firing = false
		if err != nil || !done {
			return false, err
		}
		o.sets = 0
	}
	for _, s := range o.sweeps {
		done, err := s.advance(c, w, left)
		if err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// tick implements ticks.
func (o *customTime) tick(c *Context, now int64) (int64, error) {
	next := int64(math.MaxInt64)
	if t := o.processing; t != nil {
		left := budget{maxPerTick}
		done, err := t.fireDue(c, now, &left)
		if err != nil {
			return 0, err
		}
		if !done {
			next = now
		} else if at, ok, err := t.view.NextDue(); err != nil {
			return 0, c.stateError(o.op, err)
		} else if ok {
			next = min(next, at)
		}
	}
	if o.every != nil {
		if err := o.every.run(c, now); err != nil {
			return 0, err
		}
		next = min(next, o.every.due)
	}
	for _, s := range o.wallSweeps {
		at, err := s(c, now)
		if err != nil {
			return 0, err
		}
		next = min(next, at)
	}
	return next, nil
}

const customTimeVersion = 1

// cursor implements fires: version, 1 byte | hold, 8 bytes. Timers that are left of an advance are rows of their store.
func (o *customTime) cursor(dst []byte) []byte {
	if o.node.hold == nil {
		return dst
	}
	return binary.BigEndian.AppendUint64(append(dst, customTimeVersion), uint64(o.hold))
}

// resume implements fires.
func (o *customTime) resume(b []byte) error {
	// Timers may have been set behind the watermark, and a restore brings rows back that have expired.
	o.node.again = true
	if len(b) == 0 {
		return nil
	}
	if len(b) != 9 || b[0] != customTimeVersion {
		return fmt.Errorf("%w: %d bytes", errCursor, len(b))
	}
	o.hold = int64(binary.BigEndian.Uint64(b[1:]))
	return nil
}

// pause implements fires: nothing is held open.
func (o *customTime) pause() error { return nil }

// close implements fires.
func (o *customTime) close() error {
	var errs []error
	for _, s := range o.sweeps {
		if s.close != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

// call runs a method of the processor that no record causes, under a key and at a time.
func (o *customTime) call(c *Context, key []byte, time int64, method func() error) error {
	c.between(c.task)
	c.key, c.time, c.op, c.origin = key, time, o.op, watermark.Unknown
	err := method()
	switch {
	case c.broken != nil:
		return c.broken
	case c.emitErr != nil:
		return c.emitErr
	case err != nil:
		return c.fail(o.op, StageUser, err)
	}
	c.headers = nil
	return nil
}

// watch connects the processor's methods with what calls them.
func (p *CustomConfig[K, V, K2, V2]) watch(b *Builder) error {
	o, out := p.Scope.time, Emitter[K2, V2]{p.Out}
	if o.event != nil || o.processing != nil {
		m, ok := p.Processor.(interface {
			OnTimer(out Emitter[K2, V2], t Timer[K]) error
		})
		if !ok {
			return fmt.Errorf("%w: OnTimer(Emitter[%T, %T], Timer[%T]) error", ErrNoMethod, *new(K2), *new(V2), *new(K))
		}
		for _, t := range [...]*timers{o.event, o.processing} {
			if t != nil {
				t.fire = func(c *Context, key, tag []byte, at int64) error {
					k, err := p.Key.Decode(key)
					if err != nil {
						c.key = key
						return c.fail(o.op, StageDecodeKey, err)
					}
					return o.call(c, key, at, func() error {
						return m.OnTimer(out, Timer[K]{Context: c, Key: k, Tag: string(tag), Time: at, Domain: t.domain})
					})
				}
			}
		}
	}
	if o.every != nil {
		m, ok := p.Processor.(interface {
			OnTick(out Emitter[K2, V2], t Tick) error
		})
		if !ok {
			return fmt.Errorf("%w: OnTick(Emitter[%T, %T], Tick) error", ErrNoMethod, *new(K2), *new(V2))
		}
		o.every.fire = func(c *Context, t Tick) error {
			t.Context = c
			return o.call(c, nil, t.Time, func() error { return m.OnTick(out, t) })
		}
	}
	if o.ticking() {
		b.t.tickers = append(b.t.tickers, o)
	}
	return nil
}

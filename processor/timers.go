package processor

import (
	"fmt"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// Domain is a kind of time.
type Domain uint8

// The kinds of time.
const (
	EventTime      Domain = iota // as the watermark tells it
	ProcessingTime               // as the clock tells it
)

// String returns "event time" or "processing time".
func (d Domain) String() string {
	return [...]string{"event time", "processing time"}[d&1]
}

// Timer is a timer that fires, as the OnTimer method of a custom processor gets it:
//
//	OnTimer(out Emitter[K2, V2], t Timer[K]) error
//
// What it emits has the timer's time and no headers. The embedded Context has the timer's key and belongs to no record.
type Timer[K any] struct {
	*Context
	Key    K
	Tag    string
	Time   int64 // what it was set to, in ms
	Domain Domain
}

// timers are those of one custom processor and domain.
type timers struct {
	op     Op
	domain Domain
	view   *store.TimerView
	fire   func(c *Context, key, tag []byte, at int64) error
	tag    []byte
}

// fireDue fires the timers with times up to limit in the order of time, key and tag. Those that are set meanwhile take
// their place in it.
func (t *timers) fireDue(c *Context, limit int64, left *budget) (done bool, err error) {
	for {
		if left.left <= 0 {
			at, ok, err := t.view.NextDue()
			if err != nil {
				return false, c.stateError(t.op, err)
			}
			return !ok || at > limit, nil
		}
		key, tag, at, ok, err := t.view.PopDue(limit)
		if err != nil {
			return false, c.stateError(t.op, err)
		}
		if !ok {
			return true, nil
		}
		left.take()
		c.effects++
		c.counters[t.op].Timers++
		// The view reuses what it returns; a decoded key may share memory with its bytes.
		t.tag = append(t.tag[:0], tag...)
		if err := t.fire(c, c.slab.copy(key), t.tag, at); err != nil {
			return false, err
		}
	}
}

// Timers are the timers of one custom processor of one task, for the key in hand.
type Timers struct {
	s *Scope
	t *timers
}

// NewTimers returns the access of a processor to its timers of one domain; their store is of kind Timers.
func NewTimers(b *Builder, s *Scope, id string, domain Domain) (*Timers, error) {
	view, err := store.TimerViewOf(b.Env().State, id)
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	t := &timers{op: s.op, domain: domain, view: view}
	if domain == EventTime {
		s.time.event = t
	} else {
		s.time.processing = t
	}
	return &Timers{s, t}, nil
}

// key returns the key in hand, which a timer needs.
func (t *Timers) key() ([]byte, error) {
	c := t.s.c
	if c.key == nil {
		return nil, c.fail(t.s.op, StageNullKey, ErrNull)
	}
	return c.key, nil
}

// Set sets the timer with a tag, or moves it.
func (t *Timers) Set(tag string, at int64) error {
	c, o := t.s.c, t.s.time
	key, err := t.key()
	if err != nil {
		return err
	}
	c.effects++
	if err := t.t.view.Set(key, []byte(tag), at); err != nil {
		return c.stateError(t.s.op, err)
	}
	switch {
	case t.t.domain == ProcessingTime:
		c.task.wake(at)
	case o.firing:
		if at > o.node.target {
			break
		}
		if o.sets++; o.sets > maxAgain {
			c.broken = c.fail(t.s.op, StageUser, ErrTimerLoop)
			return c.broken
		}
	case at <= o.node.w:
		// It is due: it fires before the next record.
		o.node.again, c.task.moved = true, true
	}
	return nil
}

// Delete removes the timer with a tag, if it is set.
func (t *Timers) Delete(tag string) error {
	key, err := t.key()
	if err != nil {
		return err
	}
	t.s.c.effects++
	if err := t.t.view.Delete(key, []byte(tag)); err != nil {
		return t.s.c.stateError(t.s.op, err)
	}
	return nil
}

// Get returns what the timer with a tag is set to, and whether it is.
func (t *Timers) Get(tag string) (at int64, ok bool, err error) {
	key, err := t.key()
	if err != nil {
		return 0, false, err
	}
	at, ok, err = t.t.view.Get(key, []byte(tag))
	if err != nil {
		return 0, false, t.s.c.stateError(t.s.op, err)
	}
	return at, ok, nil
}

// Watermark returns the watermark of a processor, watermark.Unknown if nothing it lists asks for one.
func (s *Scope) Watermark() int64 {
	if s.time.node == nil {
		return watermark.Unknown
	}
	return s.time.node.w
}

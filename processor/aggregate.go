package processor

import (
	"fmt"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// Step folds one record into the aggregate of its key. acc is the zero value and have false when there is none yet.
type Step[K, V, A any] func(c *Context, k K, acc A, have bool, v V) (A, error)

// AggregateConfig describes an unwindowed aggregate: one row per key.
type AggregateConfig[K, V, A any] struct {
	Op   Op             // its operator
	View *store.View[A] // its store
	Step Step[K, V, A]  // its function
	// Undo takes a value out again, for input that retracts; nil if it does not.
	Undo func(c *Context, k K, acc A, v V) (A, error)
	// Null is how a result of null, which deletes the row, is known; nil if A has no null.
	Null codec.Nullable[A]
	// EveryUpdate emits each change at once; else Flush emits the latest per key.
	EveryUpdate bool
	// Key decodes the key for what follows a Flush; nil if nothing there uses it.
	Key     codec.Codec[K]
	NeedOld bool            // an operator downstream uses old values
	Next    TableFunc[K, A] // nil if nothing follows
}

// NewAggregate returns the operator and, if it holds results back, what emits them at a Flush, else nil. The time of a
// result is the maximum of the record's and the previous result's; results carry no headers.
func NewAggregate[K, V, A any](c *Context, a AggregateConfig[K, V, A]) (Func[K, V], func() error) {
	var flush func() error
	if a.Next != nil && !a.EveryUpdate {
		if a.NeedOld {
			a.View.EnableOld()
		}
		flush = func() error { return a.flush(c) }
	}
	return a.run(), flush
}

func (a AggregateConfig[K, V, A]) run() Func[K, V] {
	var d Delta[A]
	return func(c *Context, k K, v V) error {
		if c.key == nil {
			return c.fail(a.Op, StageNullKey, ErrNull)
		}
		change := c.change
		if change == window.OpDelete {
			return nil // its value was taken back by the retraction before
		}
		row, err := a.View.Row(c.key)
		if err != nil {
			return c.stateError(a.Op, err)
		}
		c.op = a.Op
		had, old, time := row.Present, row.Value, c.time
		if had {
			time = max(time, row.Time)
		}
		var acc A
		if change == window.OpRetract && a.Undo != nil {
			acc, err = a.Undo(c, k, old, v)
		} else {
			acc, err = a.Step(c, k, old, had, v)
		}
		if err != nil {
			return c.fail(a.Op, StageUser, err)
		}
		has := a.Null == nil || !a.Null.IsNull(acc)
		if !has && !had {
			return nil
		}
		c.effects++
		if has {
			a.View.Set(row, acc, time)
		} else {
			a.View.Remove(row, time)
		}
		if !a.EveryUpdate || a.Next == nil {
			return nil
		}
		headers, before, raw := c.headers, c.time, c.raw
		c.headers, c.time, c.raw, c.change = nil, time, false, 0
		d = Delta[A]{New: acc, Old: old, Has: has, Had: had}
		if err := a.Next(c, k, &d); err != nil {
			return err
		}
		c.headers, c.time, c.raw, c.change = headers, before, raw, change
		return nil
	}
}

// flush emits the rows that changed since the last one.
func (a *AggregateConfig[K, V, A]) flush(c *Context) error {
	var d Delta[A]
	return a.View.Drain(func(key []byte, old A, hadOld bool, row *store.Row[A]) error {
		if !row.Present && !hadOld && a.NeedOld {
			return nil // came and went between two commits
		}
		var k K
		c.key, c.keyShared, c.raw, c.headers, c.time = key, true, false, nil, row.Time
		if a.Key != nil {
			// A decoded key may share memory with its bytes, and those are the view's.
			var err error
			c.key, c.keyShared = c.slab.copy(key), false
			if k, err = a.Key.Decode(c.key); err != nil {
				return c.fail(a.Op, StageDecodeKey, err)
			}
		}
		d = Delta[A]{New: row.Value, Old: old, Has: row.Present, Had: hadOld || !a.NeedOld}
		return a.Next(c, k, &d)
	})
}

// stateError wraps an error of the state and remembers it, so that user code cannot turn it into its own.
func (c *Context) stateError(op Op, err error) error {
	c.broken = fmt.Errorf("processor: %s: %w", c.operators[op], err)
	return c.broken
}

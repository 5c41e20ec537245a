package processor

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// Delta is one change of a table's row. Its producer owns it and reuses it: consumers copy what they keep.
type Delta[V any] struct {
	New, Old V    // Old is set only if an operator downstream uses it
	Has, Had bool // whether there is a row after the change, and before it
}

// TableFunc is one operator of a table as it runs.
type TableFunc[K, V any] func(c *Context, k K, d *Delta[V]) error

// TableInput takes the record of a topic that is read as a table; present is false for a delete.
type TableInput[K, V any] func(c *Context, k K, v V, present bool) error

// TableFan returns one TableFunc that calls all of next in order, nil if there is none.
func TableFan[K, V any](next []TableFunc[K, V]) TableFunc[K, V] {
	switch len(next) {
	case 0:
		return nil
	case 1:
		return next[0]
	}
	return func(c *Context, k K, d *Delta[V]) error {
		for _, f := range next {
			if err := f(c, k, d); err != nil {
				return err
			}
		}
		return nil
	}
}

// NewTableInput keeps a topic's latest value per key in a view and passes every change on at once. As in Kafka Streams
// the last record to arrive wins, whatever its timestamp. A delete of a row that is not there changes nothing and goes
// no further. next may be nil.
func NewTableInput[K, V any](op Op, view *store.View[V], next TableFunc[K, V]) TableInput[K, V] {
	var d Delta[V]
	return func(c *Context, k K, v V, present bool) error {
		row, err := view.Row(c.key)
		if err != nil {
			return c.stateError(op, err)
		}
		if !present && !row.Present {
			return nil
		}
		d = Delta[V]{New: v, Old: row.Value, Has: present, Had: row.Present}
		c.effects++
		if present {
			view.Set(row, v, c.time)
		} else {
			view.Remove(row, c.time)
		}
		if next == nil {
			return nil
		}
		return next(c, k, &d)
	}
}

// TableFilter keeps the rows pred accepts. A row that leaves the filtered table is a delete there, and a change of a
// row that was not and is not in it goes no further.
func TableFilter[K, V any](op Op, pred func(*Context, K, V) (bool, error), next TableFunc[K, V]) TableFunc[K, V] {
	var out Delta[V]
	return func(c *Context, k K, d *Delta[V]) error {
		headers := c.headers
		c.op = op
		has, had := d.Has, d.Had
		var err error
		if had {
			if had, err = pred(c, k, d.Old); err != nil {
				return c.fail(op, StageUser, err)
			}
			c.headers = headers // headers are of the new row
		}
		if has {
			if has, err = pred(c, k, d.New); err != nil {
				return c.fail(op, StageUser, err)
			}
		}
		if has || had {
			out = Delta[V]{New: d.New, Old: d.Old, Has: has, Had: had}
			if err := next(c, k, &out); err != nil {
				return err
			}
		}
		c.headers = headers
		return nil
	}
}

// TableMap replaces the values of a table. If an operator downstream uses old values (needOld), f runs for them too. A
// result that is null (null may be nil: the type has none) deletes the row.
func TableMap[K, V, R any](op Op, f func(*Context, K, V) (R, error), null codec.Nullable[R], needOld bool, next TableFunc[K, R]) TableFunc[K, V] {
	var out Delta[R]
	return func(c *Context, k K, d *Delta[V]) error {
		headers, raw := c.headers, c.raw
		c.op = op
		out = Delta[R]{Has: d.Has, Had: d.Had}
		var err error
		if d.Had && needOld {
			if out.Old, err = f(c, k, d.Old); err != nil {
				return c.fail(op, StageUser, err)
			}
			if null != nil && null.IsNull(out.Old) {
				out.Had = false
			}
			c.headers = headers
		}
		if d.Has {
			if out.New, err = f(c, k, d.New); err != nil {
				return c.fail(op, StageUser, err)
			}
			if null != nil && null.IsNull(out.New) {
				out.Has = false
			}
		}
		if out.Has || out.Had {
			c.raw = false
			if err := next(c, k, &out); err != nil {
				return err
			}
		}
		c.headers, c.raw = headers, raw
		return nil
	}
}

// ToStream passes the new value of every change on as a record. A delete becomes a record with the type's null, or
// nothing if it has none (null is nil).
func ToStream[K, V any](null codec.Nullable[V], next Func[K, V]) TableFunc[K, V] {
	return func(c *Context, k K, d *Delta[V]) error {
		if d.Has {
			return next(c, k, d.New)
		}
		if null == nil {
			return nil
		}
		value, raw := c.value, c.raw
		c.raw = false
		if err := next(c, k, null.Null()); err != nil {
			return err
		}
		c.value, c.raw = value, raw
		return nil
	}
}

// Changes turns every change into a record, or nothing, as f says.
func Changes[K, V, R any](op Op, f func(c *Context, k K, d *Delta[V]) (R, bool, error), next Func[K, R]) TableFunc[K, V] {
	return func(c *Context, k K, d *Delta[V]) error {
		headers, raw := c.headers, c.raw
		c.op = op
		r, ok, err := f(c, k, d)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		if ok {
			c.raw = false
			if err := next(c, k, r); err != nil {
				return err
			}
		}
		c.headers, c.raw = headers, raw
		return nil
	}
}

package processor

import (
	"math"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// Lifetime says how long the rows of a store are good and who drops them.
type Lifetime struct {
	Node  *Node // of the processor that owns the store: its watermark drops rows; nil for processing time
	For   int64 // in ms
	Owner bool  // the processor at hand drops them
}

// NewExpiringKV returns the access of a processor to a key-value store whose rows expire.
func NewExpiringKV[K, V any](s *Scope, view *store.ExpiringView[V], key codec.Codec[K], value codec.Codec[V], l Lifetime) *KV[K, V] {
	r := expiringRows[V]{view, s.c, l}
	if l.Owner {
		if l.Node != nil {
			s.time.sweeps = append(s.time.sweeps, sweep{advance: func(c *Context, w int64, left *budget) (bool, error) {
				return r.sweep(c, s.op, w, left)
			}})
		} else {
			s.time.wallSweeps = append(s.time.wallSweeps, func(c *Context, now int64) (int64, error) {
				return r.sweepWall(c, s.op, now)
			})
		}
	}
	return &KV[K, V]{scope: s, rows: r, key: key, null: nullOf(value)}
}

// expiringRows are rows that are good for a time since their last write.
type expiringRows[V any] struct {
	view *store.ExpiringView[V]
	c    *Context
	l    Lifetime
}

// now is what rows are judged by: the time of the record in hand, and never one that rows are dropped by already.
func (r expiringRows[V]) now() int64 {
	if r.l.Node == nil {
		return r.c.task.now
	}
	return max(r.c.time, r.l.Node.w)
}

func (r expiringRows[V]) Get(key []byte) (V, bool, error) { return r.view.Get(key, r.now()) }

// Put makes a row good from now on. An older record does not shorten what a newer one has given.
func (r expiringRows[V]) Put(key []byte, v V, time int64) error {
	from := time
	if r.l.Node == nil {
		from = r.c.task.now
	}
	until := satAdd(from, r.l.For)
	if had, ok, err := r.view.Until(key); err != nil {
		return err
	} else if ok {
		until = max(until, had)
	}
	if r.l.Node == nil {
		r.c.task.wake(until)
	}
	return r.view.Put(key, v, time, until)
}

func (r expiringRows[V]) Delete(key []byte, time int64) error { return r.view.Delete(key, time) }

func (r expiringRows[V]) each(lo, hi []byte, fn func([]byte, V) (bool, error)) error {
	return r.view.Scan(lo, hi, r.now(), fn)
}

// sweep drops the rows that are good no longer.
func (r expiringRows[V]) sweep(c *Context, op Op, now int64, left *budget) (bool, error) {
	for {
		if left.left <= 0 {
			at, ok, err := r.view.NextDue()
			if err != nil {
				return false, c.stateError(op, err)
			}
			return !ok || at > now, nil
		}
		_, ok, err := r.view.PopExpired(now, max(now, 0))
		if err != nil {
			return false, c.stateError(op, err)
		}
		if !ok {
			return true, nil
		}
		left.take()
		c.effects++
	}
}

func (r expiringRows[V]) sweepWall(c *Context, op Op, now int64) (int64, error) {
	done, err := r.sweep(c, op, now, &budget{maxPerTick})
	if err != nil || !done {
		return now, err
	}
	next, ok, err := r.view.NextDue()
	switch {
	case err != nil:
		return 0, c.stateError(op, err)
	case !ok:
		return math.MaxInt64, nil
	}
	return next, nil
}

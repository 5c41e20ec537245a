package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidemark/tidemark/codec"
)

// ExpiringView is the typed form of a key-value store whose rows are good up to a time of their own. What that time
// means, event or wall clock, is the caller's.
type ExpiringView[V any] struct {
	v    *View[expiring[V]]
	dues *dues
	q    *dueQueue
	due  []byte
}

type expiring[V any] struct {
	until int64
	value V
}

// expiringCodec puts the time, 8 bytes big-endian, before the value.
type expiringCodec[V any] struct{ codec.Codec[V] }

func (c expiringCodec[V]) Append(dst []byte, e expiring[V]) ([]byte, error) {
	return c.Codec.Append(binary.BigEndian.AppendUint64(dst, uint64(e.until)), e.value)
}

func (c expiringCodec[V]) Decode(b []byte) (e expiring[V], err error) {
	if len(b) < 8 {
		return e, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(b))
	}
	e.until = int64(binary.BigEndian.Uint64(b))
	e.value, err = c.Codec.Decode(b[8:])
	return e, err
}

func (c expiringCodec[V]) Aliases() bool { return aliases(c.Codec) }

// aliases says whether values of a codec may share memory with their encoding.
func aliases[V any](c codec.Codec[V]) bool {
	a, ok := c.(codec.Aliasing)
	return !ok || a.Aliases()
}

// ExpiringViewOf returns the view of a store of kind Expiring. It is the same view on every call for one State.
func ExpiringViewOf[V any](s *State, store string, c codec.Codec[V]) (*ExpiringView[V], error) {
	return wrapperOf(s, store, Expiring, codec.Codec[expiring[V]](expiringCodec[V]{c}), func(v *View[expiring[V]]) (*ExpiringView[V], error) {
		d, err := newDues(s, v.store)
		if err != nil {
			return nil, err
		}
		e := &ExpiringView[V]{v: v, dues: d, q: d.open(nil)}
		s.queues = append(s.queues, e.q)
		return e, nil
	})
}

// Get returns the value of key if it is good at now: now < until.
func (v *ExpiringView[V]) Get(key []byte, now int64) (val V, ok bool, err error) {
	r, err := v.v.Row(key)
	if err != nil || !r.Present || r.Value.until <= now {
		return val, false, err
	}
	return r.Value.value, true, nil
}

// Until returns the time until which the row of key is good, and whether there is one that was not popped.
func (v *ExpiringView[V]) Until(key []byte) (until int64, ok bool, err error) {
	r, err := v.v.Row(key)
	if err != nil {
		return 0, false, err
	}
	return r.Value.until, r.Present, nil
}

// Put sets the value of key, to be good until that time. time is the timestamp of the row. All in ms.
func (v *ExpiringView[V]) Put(key []byte, val V, time, until int64) error {
	r, err := v.v.Row(key)
	if err != nil {
		return err
	}
	had, old := r.Present, r.Value.until
	v.v.Set(r, expiring[V]{until, val}, time)
	switch {
	case !had:
		return v.dues.add(until, key)
	case old != until:
		return v.dues.move(old, key, until, key)
	}
	return nil
}

// Delete removes the row of key.
func (v *ExpiringView[V]) Delete(key []byte, time int64) error {
	r, err := v.v.Row(key)
	if err != nil || !r.Present {
		return err
	}
	old := r.Value.until
	v.v.Remove(r, time)
	return v.dues.remove(old, key)
}

// PopExpired removes one row with until <= now, the earliest first, and returns its key, valid until the next call on the
// view; ok is false if there is none. The changelog gets a tombstone of that time.
func (v *ExpiringView[V]) PopExpired(now, time int64) (key []byte, ok bool, err error) {
	for {
		k, ok, err := v.q.next(now)
		if !ok || err != nil {
			return nil, false, err
		}
		v.due = append(v.due[:0], k...)
		r, err := v.v.Row(v.due[8:])
		if err != nil {
			return nil, false, err
		}
		v.q.take()
		expired := r.Present && r.Value.until == timeAt(v.due)
		if expired {
			v.v.Remove(r, time)
		}
		if err := v.dues.v.Delete(v.due, 0); err != nil {
			return nil, false, err
		}
		if expired {
			return v.due[8:], true, nil
		}
	}
}

// NextDue returns a time before which no row has to be popped, and ok false if there is no row at all.
func (v *ExpiringView[V]) NextDue() (t int64, ok bool, err error) {
	k, _, err := v.q.next(0)
	if k == nil || err != nil {
		return 0, false, err
	}
	return timeAt(k), true, nil
}

// Scan calls fn for the rows with lo <= key < hi that are good at now, in the order of their keys, until it returns
// false. A nil hi is open. The key is valid during the call.
func (v *ExpiringView[V]) Scan(lo, hi []byte, now int64, fn func(key []byte, val V) (bool, error)) error {
	c, err := v.v.Scan(lo, hi)
	if err != nil {
		return err
	}
	for c.Next() {
		e, err := c.Value()
		more := err == nil
		if err == nil && e.until > now {
			more, err = fn(c.Key(), e.value)
		}
		if err != nil || !more {
			return errors.Join(err, c.Close())
		}
	}
	return errors.Join(c.Err(), c.Close())
}

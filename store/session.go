package store

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
)

// Span is one session: Start <= t < End, in ms.
type Span struct{ Start, End int64 }

// SessionView is the typed form of a store of sessions: rows of key and span. A key's sessions do not overlap unless the
// caller makes them.
type SessionView[V any] struct {
	v    *View[V]
	dues *dues
	dir  sessionDir
	from []byte
	to   []byte
}

// SessionViewOf returns the view of a store of kind Session. It is the same view on every call for one State.
func SessionViewOf[V any](s *State, store string, c codec.Codec[V]) (*SessionView[V], error) {
	return wrapperOf(s, store, Session, c, func(v *View[V]) (*SessionView[V], error) {
		d, err := newDues(s, v.store)
		if err != nil {
			return nil, err
		}
		w := &SessionView[V]{v: v, dues: d}
		w.dir.limit = int(max(1000, s.o.ViewBytes/256))
		w.reset()
		w.dir.complete = s.ceilings[v.store].nothing() && len(s.committedGens.list) == 0 && s.sealed == nil
		s.queues = append(s.queues, w)
		return w, nil
	})
}

// reset implements queue.
func (v *SessionView[V]) reset() {
	v.dir.reset()
	v.dues.queues = nil
}

// entry returns the entry of key in the directory. If it is not there, the key's sessions are read from the committed
// layers and the DB.
func (v *SessionView[V]) entry(key []byte) (uint32, error) {
	hash := v.v.s.hash(key)
	if i, ok := v.dir.find(key, hash); ok {
		return i, nil
	}
	v.from = AppendTermKey(v.from[:0], key)
	var found []Span
	if !v.dir.complete {
		c := &Cursor[V]{v: v.v, at: -1}
		if err := v.v.scanLayers(c, v.from, successor(v.from)); err != nil {
			return 0, err
		}
		for c.Next() {
			_, s, ok := ParseSessionKey(c.Key())
			if !ok {
				return 0, errors.Join(fmt.Errorf("store: %s: row %q: %w", v.v.id(), c.Key(), ErrCorrupt), c.Close())
			}
			found = append(found, s)
		}
		if err := c.Close(); err != nil {
			return 0, err
		}
	}
	i := v.dir.insert(key, v.v.s.hash, v.v.s.committed)
	for _, s := range found {
		v.dir.add(i, s)
	}
	return i, nil
}

// Overlapping appends the sessions of key with Start < span.End and span.Start < End, in ascending order of End, Start.
func (v *SessionView[V]) Overlapping(dst []Span, key []byte, span Span) ([]Span, error) {
	i, err := v.entry(key)
	if err != nil {
		return dst, err
	}
	var one [1]Span
	for _, s := range v.dir.spans(i, &one) {
		if s.Start < span.End && span.Start < s.End {
			dst = append(dst, s)
		}
	}
	return dst, nil
}

// Sessions appends all sessions of key, in ascending order of End, Start.
func (v *SessionView[V]) Sessions(dst []Span, key []byte) ([]Span, error) {
	i, err := v.entry(key)
	if err != nil {
		return dst, err
	}
	var one [1]Span
	return append(dst, v.dir.spans(i, &one)...), nil
}

// Row finds or loads one session, to be read, or written through Set. The pointer is valid until the next call on the
// view. A session that is not there comes with Present false; Put makes a new one.
func (v *SessionView[V]) Row(key []byte, s Span) (*Row[V], error) {
	v.to = AppendSessionKey(v.to[:0], key, s)
	return v.v.Row(v.to)
}

// Set changes a session that Row or Next has just returned. It must be present.
func (v *SessionView[V]) Set(r *Row[V], val V, time int64) { v.v.Set(r, val, time) }

// Put sets the value of a session, new or not. time is the timestamp of the row in ms.
func (v *SessionView[V]) Put(key []byte, s Span, val V, time int64) error {
	i, err := v.entry(key)
	if err != nil {
		return err
	}
	v.dir.entries[i].mark = v.v.s.cur
	v.to = AppendSessionKey(v.to[:0], key, s)
	if !v.dir.add(i, s) {
		return v.v.Put(v.to, val, time)
	}
	if err := v.v.putNew(v.to, val, time, true); err != nil {
		return err
	}
	return v.dues.add(s.End, v.to)
}

// Remove removes a session.
func (v *SessionView[V]) Remove(key []byte, s Span, time int64) error {
	i, err := v.entry(key)
	if err != nil || !v.dir.remove(i, s) {
		return err
	}
	v.dir.entries[i].mark = v.v.s.cur
	v.to = AppendSessionKey(v.to[:0], key, s)
	if err := v.v.Delete(v.to, time); err != nil {
		return err
	}
	return v.dues.remove(s.End, v.to)
}

// Move is Remove of from and Put of to. A session that was made in this generation leaves no trace under its old span.
func (v *SessionView[V]) Move(key []byte, from, to Span, val V, time int64) error {
	i, err := v.entry(key)
	if err != nil {
		return err
	}
	if from == to || !v.dir.remove(i, from) {
		return v.Put(key, to, val, time)
	}
	v.dir.entries[i].mark = v.v.s.cur
	if !v.dir.add(i, to) {
		v.dir.add(i, from)
		return errors.Join(v.Remove(key, from, time), v.Put(key, to, val, time))
	}
	v.from = AppendSessionKey(v.from[:0], key, from)
	v.to = AppendSessionKey(v.to[:0], key, to)
	if err := v.v.move(v.from, v.to, val, time, true); err != nil {
		return err
	}
	return v.dues.move(from.End, v.from, to.End, v.to)
}

// Drain is View.Drain: it visits the sessions changed since the last Drain, removed ones included.
func (v *SessionView[V]) Drain(fn func(key []byte, s Span, r *Row[V]) error) error {
	return v.v.Drain(func(k []byte, _ V, _ bool, r *Row[V]) error {
		key, s, ok := ParseSessionKey(k)
		if !ok {
			return fmt.Errorf("store: %s: row %q: %w", v.v.id(), k, ErrCorrupt)
		}
		return fn(key, s, r)
	})
}

// Due returns a queue of the sessions with End > after. It is good until the next Rollback of the State.
func (v *SessionView[V]) Due(after int64) *SessionQueue[V] {
	q := &SessionQueue[V]{v: v}
	if after < math.MaxInt64 {
		q.q = v.dues.open(AppendTimeKey(nil, after+1))
	}
	return q
}

// SessionQueue hands out sessions in the order of End, key, Start, without removing them. Sessions that are put behind
// the last one handed out take their place in it; the others are handed out next, if their End is above the beginning of
// the queue.
type SessionQueue[V any] struct {
	v   *SessionView[V]
	q   *dueQueue // nil: nothing can be due
	due []byte
}

// Next returns the next session with End <= upTo; ok is false if there is none for now. key is valid until the next call
// of Next, the row until the next call on the view.
func (q *SessionQueue[V]) Next(upTo int64) (key []byte, s Span, r *Row[V], ok bool, err error) {
	for q.q != nil {
		k, ok, err := q.q.next(upTo)
		if !ok || err != nil {
			return nil, Span{}, nil, false, err
		}
		q.due = append(q.due[:0], k...)
		key, s, ok := ParseSessionKey(q.due[8:])
		if !ok {
			return nil, Span{}, nil, false, fmt.Errorf("store: %s: due row %q: %w", q.v.v.id(), q.due, ErrCorrupt)
		}
		r, err := q.v.v.Row(q.due[8:])
		if err != nil {
			return nil, Span{}, nil, false, err
		}
		q.q.take()
		if r.Present && s.End == timeAt(q.due) {
			return key, s, r, true, nil
		}
		// Out of date: of a session that has moved or gone.
		if err := q.v.dues.v.Delete(q.due, 0); err != nil {
			return nil, Span{}, nil, false, err
		}
	}
	return nil, Span{}, nil, false, nil
}

// Close ends the queue.
func (q *SessionQueue[V]) Close() {
	if q.q != nil {
		q.v.dues.close(q.q)
		q.q = nil
	}
}

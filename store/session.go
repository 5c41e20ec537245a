package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark/tidemark/codec"
)

// Span is one session: Start <= t < End, in ms.
type Span struct{ Start, End int64 }

// SessionView is the typed form of a store of sessions: rows of key and span. A key's sessions do not overlap unless the
// caller makes them.
type SessionView[V any] struct {
	v      *View[V]
	due    int // the store of due times
	dir    sessionDir
	ends   sessionEnds
	queues []*SessionQueue[V]
	none   Row[V]
	from   []byte
	to     []byte
}

// SessionViewOf returns the view of a store of kind Session. It is the same view on every call for one State.
func SessionViewOf[V any](s *State, store string, c codec.Codec[V]) (*SessionView[V], error) {
	return wrapperOf(s, store, Session, c, func(v *View[V]) (*SessionView[V], error) {
		w := &SessionView[V]{v: v, due: s.dues[v.store]}
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
	v.ends.clear()
	v.queues = nil
}

// entry returns the entry of key in the directory. If it is not there, the key's sessions are read from the committed
// layers and the DB.
func (v *SessionView[V]) entry(key []byte) (uint32, error) {
	d := &v.dir
	if int(d.last) < len(d.entries) && d.is(d.last, key) {
		return d.last, nil
	}
	if i, ok := d.find(key, v.v.s.hash(key)); ok {
		return i, nil
	}
	v.from = AppendTermKey(v.from[:0], key)
	var found []Span
	if !d.complete {
		c := &Cursor[V]{v: v.v, at: -1}
		if err := v.v.scanLayers(c, v.from, Successor(v.from)); err != nil {
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
	i := d.insert(key, v.v.s.hash, v.v.s.committed)
	for _, s := range found {
		d.add(i, s)
	}
	return i, nil
}

// Overlapping appends the sessions of key with Start < span.End and span.Start < End, in ascending order of End, Start.
func (v *SessionView[V]) Overlapping(dst []Span, key []byte, span Span) ([]Span, error) {
	i, err := v.entry(key)
	if err != nil {
		return dst, err
	}
	for _, s := range v.dir.spans(i) {
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
	return append(dst, v.dir.spans(i)...), nil
}

// Row finds or loads one session, to be read, or written through Set. The pointer is valid until the next call on the
// view. A session that is not there comes with Present false; Put makes a new one.
func (v *SessionView[V]) Row(key []byte, s Span) (*Row[V], error) {
	i, err := v.entry(key)
	if err != nil {
		return nil, err
	}
	if _, ok := v.dir.place(i, s); !ok {
		// The view may have let go of what it knew of a session that is gone.
		v.none = Row[V]{}
		return &v.none, nil
	}
	v.to = AppendSessionKey(v.to[:0], key, s)
	if r := v.v.again(v.to); r != nil {
		return r, nil
	}
	return v.v.Row(v.to)
}

// Set changes a session that Row has just returned. It must be present.
func (v *SessionView[V]) Set(r *Row[V], val V, time int64) { v.v.Set(r, val, time) }

// Put sets the value of a session, new or not. time is the timestamp of the row in ms.
func (v *SessionView[V]) Put(key []byte, s Span, val V, time int64) error {
	i, err := v.entry(key)
	if err != nil {
		return err
	}
	v.to = AppendSessionKey(v.to[:0], key, s)
	if !v.dir.add(i, s) {
		if r := v.v.again(v.to); r != nil {
			v.v.Set(r, val, time)
			return nil
		}
		return v.v.Put(v.to, val, time)
	}
	v.dir.entries[i].mark = v.v.s.cur
	v.ended(s.End, key, i)
	return v.v.putNew(v.to, val, time, true)
}

// Remove removes a session.
func (v *SessionView[V]) Remove(key []byte, s Span, time int64) error {
	i, err := v.entry(key)
	if err != nil || !v.dir.remove(i, s) {
		return err
	}
	v.dir.entries[i].mark = v.v.s.cur
	v.to = AppendSessionKey(v.to[:0], key, s)
	return v.v.Delete(v.to, time)
}

// Move is Remove of from and Put of to. A session that was made in this generation leaves no trace under its old span.
func (v *SessionView[V]) Move(key []byte, from, to Span, val V, time int64) error {
	i, err := v.entry(key)
	if err != nil {
		return err
	}
	if from == to || !slices.Contains(v.dir.spans(i), from) {
		return v.Put(key, to, val, time)
	}
	if !v.dir.replace(i, from, to) {
		return errors.Join(v.Remove(key, from, time), v.Put(key, to, val, time))
	}
	v.dir.entries[i].mark = v.v.s.cur
	v.grown(key, i, from, to)
	v.from = AppendSessionKey(v.from[:0], key, from)
	v.to = AppendSessionKey(v.to[:0], key, to)
	return v.v.move(v.from, v.to, val, time, true)
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

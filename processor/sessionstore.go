package processor

import (
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// Sessions is a store of sessions as one custom processor of one task uses it.
type Sessions[K, V any] struct {
	access[K]
	view  *store.SessionView[V]
	null  codec.Nullable[V]
	spans []store.Span
	queue *store.SessionQueue[V]
}

// NewSessions returns the access of a processor to a store of kind Session.
func NewSessions[K, V any](cfg StoreConfig[K], view *store.SessionView[V], value codec.Codec[V]) *Sessions[K, V] {
	s := &Sessions[K, V]{access: access[K]{StoreConfig: cfg}, view: view, null: nullOf(value)}
	s.drops(sweep{advance: s.sweep, close: func() error {
		if s.queue != nil {
			s.queue.Close()
		}
		return nil
	}})
	return s
}

// sweep removes the sessions that are kept no longer.
func (s *Sessions[K, V]) sweep(_ *Context, w int64, left *budget) (bool, error) {
	if s.queue == nil {
		s.queue = s.view.Due(math.MinInt64)
	}
	for {
		key, span, ok, err := s.queue.Next(satAdd(w, -s.Keep))
		if err != nil || !ok {
			return err == nil, s.state(err)
		}
		s.wrote()
		if err := s.view.Remove(key, span, max(span.End, 0)); err != nil {
			return false, s.state(err)
		}
		if !left.take() {
			return false, nil
		}
	}
}

// span checks the bounds of a session.
func (s *Sessions[K, V]) span(b window.Bounds) (store.Span, error) {
	if b.Start >= b.End {
		return store.Span{}, s.Scope.c.fail(s.Scope.op, StageUser, fmt.Errorf("%w: [%d, %d)", ErrNoWindow, b.Start, b.End))
	}
	return store.Span(b), nil
}

// Put sets the value of a session of a key, new or not, with the timestamp in hand. A value that stands for null deletes
// it. It reports false, and does nothing, if a session with this end is kept no longer. Sessions of a key may overlap.
func (s *Sessions[K, V]) Put(k K, b window.Bounds, v V) (bool, error) {
	span, err := s.span(b)
	if err != nil || b.End <= s.horizon() {
		return false, err
	}
	if s.null != nil && s.null.IsNull(v) {
		return true, s.Delete(k, b)
	}
	key, err := s.encode(k)
	if err != nil {
		return false, err
	}
	s.wrote()
	return true, s.state(s.view.Put(key, span, v, s.Scope.c.time))
}

// Delete removes a session of a key, if there is one with these bounds.
func (s *Sessions[K, V]) Delete(k K, b window.Bounds) error {
	span, err := s.span(b)
	if err != nil {
		return err
	}
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	s.wrote()
	return s.state(s.view.Remove(key, span, s.Scope.c.time))
}

// Overlapping calls fn for the sessions of a key that have a moment in common with b, in ascending order of their ends
// and starts, until it returns false. fn may change the store.
func (s *Sessions[K, V]) Overlapping(k K, b window.Bounds, fn func(window.Bounds, V) bool) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	key = append([]byte(nil), key...)
	if s.spans, err = s.view.Overlapping(s.spans[:0], key, store.Span(b)); err != nil {
		return s.state(err)
	}
	spans := s.spans
	s.spans = nil // fn may ask as well
	defer func() { s.spans = spans }()
	for _, span := range spans {
		row, err := s.view.Row(key, span)
		if err != nil {
			return s.state(err)
		}
		if row.Present && !fn(window.Bounds(span), row.Value) {
			return nil
		}
	}
	return nil
}

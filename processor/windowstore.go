package processor

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// ErrNoWindow is the cause of an Error of a processor that uses a window which the store's kind does not have.
var ErrNoWindow = errors.New("no such window")

// Windows is a store of windows as one custom processor of one task uses it.
type Windows[K, V any] struct {
	access[K]
	view   *store.WindowView[V]
	window window.Window
	null   codec.Nullable[V]
	ends   []int64

	assigned []window.Bounds
}

// NewWindows returns the access of a processor to a store of kind Window.
func NewWindows[K, V any](cfg StoreConfig[K], view *store.WindowView[V], w window.Window, value codec.Codec[V]) *Windows[K, V] {
	s := &Windows[K, V]{access: access[K]{StoreConfig: cfg}, view: view, window: w, null: nullOf(value)}
	s.drops(sweep{advance: func(_ *Context, w int64, _ *budget) (bool, error) {
		view.Expire(satAdd(w, -cfg.Keep))
		return true, nil
	}})
	return s
}

// row finds the row of a key; it is nil if the window is kept no longer.
func (s *Windows[K, V]) row(b window.Bounds, k K) (*store.Row[V], error) {
	if s.assigned = s.window.Assign(s.assigned[:0], b.Start); !slices.Contains(s.assigned, b) {
		return nil, s.Scope.c.fail(s.Scope.op, StageUser, fmt.Errorf("%w: [%d, %d) of %v", ErrNoWindow, b.Start, b.End, s.window))
	}
	key, err := s.encode(k)
	if err != nil {
		return nil, err
	}
	row, err := s.view.Row(b.End, key)
	if errors.Is(err, store.ErrExpired) {
		return nil, nil
	}
	return row, s.state(err)
}

// Get returns the value of a key in a window and whether there is one.
func (s *Windows[K, V]) Get(b window.Bounds, k K) (v V, ok bool, err error) {
	row, err := s.row(b, k)
	if err != nil || row == nil || !row.Present {
		return v, false, err
	}
	return row.Value, true, nil
}

// Put sets the value of a key in a window, with the timestamp in hand. A value that stands for null deletes it. It
// reports false, and does nothing, if the window is kept no longer.
func (s *Windows[K, V]) Put(b window.Bounds, k K, v V) (bool, error) {
	if s.null != nil && s.null.IsNull(v) {
		return s.Delete(b, k)
	}
	row, err := s.row(b, k)
	if err != nil || row == nil {
		return false, err
	}
	s.wrote()
	s.view.Set(row, v, s.Scope.c.time)
	return true, nil
}

// Delete removes a key from a window. It reports false if the window is kept no longer.
func (s *Windows[K, V]) Delete(b window.Bounds, k K) (bool, error) {
	row, err := s.row(b, k)
	if err != nil || row == nil {
		return false, err
	}
	if row.Present {
		s.wrote()
		s.view.Remove(row, s.Scope.c.time)
	}
	return true, nil
}

// Scan calls fn for the rows of a window, ordered by encoded key, until it returns false.
func (s *Windows[K, V]) Scan(b window.Bounds, fn func(K, V) bool) error {
	rows, err := s.view.ScanEnd(b.End)
	if err != nil {
		return s.state(err)
	}
	for more := true; more && rows.Next(); {
		v, err := rows.Value()
		if err != nil {
			return s.state(errors.Join(err, rows.Close()))
		}
		k, err := s.decodeKey(rows.Key())
		if err != nil {
			return s.state(errors.Join(err, rows.Close()))
		}
		more = fn(k, v)
	}
	return s.state(errors.Join(rows.Err(), rows.Close()))
}

// Fetch calls fn for the windows of a key that start at from or later and at to or earlier, in ascending order, until it
// returns false.
func (s *Windows[K, V]) Fetch(k K, from, to int64, fn func(window.Bounds, V) bool) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	s.ends = s.view.Ends(s.ends[:0], math.MinInt64, math.MaxInt64)
	for _, end := range s.ends {
		b := s.window.Of(end)
		if b.Start < from || b.Start > to {
			continue
		}
		v, ok, err := s.view.Get(end, key)
		if err != nil {
			return s.state(err)
		}
		if ok && !fn(b, v) {
			return nil
		}
	}
	return nil
}

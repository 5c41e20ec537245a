package processor

import (
	"errors"

	"github.com/tidemark/tidemark/store"
)

var errStop = errors.New("enough")

// Lists is a store of lists as one custom processor of one task uses it.
type Lists[K, V any] struct {
	access[K]
	view *store.ListView[V]
}

// NewLists returns the access of a processor to a store of kind List.
func NewLists[K, V any](cfg StoreConfig[K], view *store.ListView[V]) *Lists[K, V] {
	return &Lists[K, V]{access[K]{StoreConfig: cfg}, view}
}

// change does something to the list of a key.
func (s *Lists[K, V]) change(k K, f func(key []byte) error) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	s.wrote()
	return s.state(f(key))
}

// Append adds a value at the end of a key's list.
func (s *Lists[K, V]) Append(k K, v V) error {
	return s.change(k, func(key []byte) error { return s.view.Append(key, v, s.Scope.c.time) })
}

// PopFront removes up to n values from the front.
func (s *Lists[K, V]) PopFront(k K, n int) error {
	return s.change(k, func(key []byte) error { return s.view.PopFront(key, n, s.Scope.c.time) })
}

// Clear removes the list of a key.
func (s *Lists[K, V]) Clear(k K) error {
	return s.change(k, func(key []byte) error { return s.view.Clear(key, s.Scope.c.time) })
}

// Len returns how many values a key's list has.
func (s *Lists[K, V]) Len(k K) (int, error) {
	key, err := s.encode(k)
	if err != nil {
		return 0, err
	}
	n, err := s.view.Len(key)
	return n, s.state(err)
}

// Each calls fn for the values of a key's list in their order, until it returns false. fn must not change the list.
func (s *Lists[K, V]) Each(k K, fn func(V) bool) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	err = s.view.Values(append([]byte(nil), key...), func(v V, _ int64) error {
		if fn(v) {
			return nil
		}
		return errStop
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return s.state(err)
}

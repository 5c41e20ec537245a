package store

import "github.com/tidemark/tidemark/codec"

// ListView is the typed form of a store with one list per key.
type ListView[V any] struct{ v *View[V] }

// ListViewOf returns the view of a store of kind List. It is the same view on every call for one State.
func ListViewOf[V any](s *State, store string, c codec.Codec[V]) (*ListView[V], error) { panic("") }

// Append adds a value at the end. time is the timestamp of the changelog records in ms.
func (v *ListView[V]) Append(key []byte, val V, time int64) error { panic("") }

// Len returns the number of values of key.
func (v *ListView[V]) Len(key []byte) (int, error) { panic("") }

// Values calls fn for the values of key in their order.
func (v *ListView[V]) Values(key []byte, fn func(val V, time int64) error) error { panic("") }

// PopFront removes up to n values from the front.
func (v *ListView[V]) PopFront(key []byte, n int, time int64) error { panic("") }

// Clear removes the list of key.
func (v *ListView[V]) Clear(key []byte, time int64) error { panic("") }

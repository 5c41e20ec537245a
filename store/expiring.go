package store

import "github.com/tidemark/tidemark/codec"

// ExpiringView is the typed form of a key-value store whose rows are good up to a time of their own. What that time
// means, event or wall clock, is the caller's.
type ExpiringView[V any] struct{ v *View[V] }

// ExpiringViewOf returns the view of a store of kind Expiring. It is the same view on every call for one State.
func ExpiringViewOf[V any](s *State, store string, c codec.Codec[V]) (*ExpiringView[V], error) {
	panic("")
}

// Get returns the value of key if it is good at now: now < until.
func (v *ExpiringView[V]) Get(key []byte, now int64) (val V, ok bool, err error) { panic("") }

// Put sets the value of key, to be good until that time. time is the timestamp of the row. All in ms.
func (v *ExpiringView[V]) Put(key []byte, val V, time, until int64) error { panic("") }

// Delete removes the row of key.
func (v *ExpiringView[V]) Delete(key []byte, time int64) error { panic("") }

// PopExpired removes one row with until <= now, the earliest first, and returns its key, valid until the next call on the
// view; ok is false if there is none. The changelog gets a tombstone of the time now.
func (v *ExpiringView[V]) PopExpired(now int64) (key []byte, ok bool, err error) { panic("") }

package processor

import (
	"math"

	"github.com/tidemark/tidemark/store"
)

// Versions is a store of values with their history as one custom processor of one task uses it.
type Versions[K, V any] struct {
	access[K]
	view *store.VersionedView[V]
}

// NewVersions returns the access of a processor to a store of kind Versioned.
func NewVersions[K, V any](cfg StoreConfig[K], view *store.VersionedView[V]) *Versions[K, V] {
	return &Versions[K, V]{access[K]{StoreConfig: cfg}, view}
}

// Put says that a key has a value from t on, up to the next later version. A value that stands for null says that it has
// none. It reports false, and does nothing, if t lies before the history that is kept.
func (s *Versions[K, V]) Put(k K, t int64, v V) (bool, error) {
	key, err := s.encode(k)
	if err != nil {
		return false, err
	}
	ok, err := s.view.Put(key, v, t, s.horizon())
	if ok {
		s.wrote()
	}
	return ok, s.state(err)
}

// Delete says that a key has no value from t on, as Put does.
func (s *Versions[K, V]) Delete(k K, t int64) (bool, error) {
	key, err := s.encode(k)
	if err != nil {
		return false, err
	}
	ok, err := s.view.Delete(key, t, s.horizon())
	if ok {
		s.wrote()
	}
	return ok, s.state(err)
}

// AsOf returns the value a key had at t and since when. Before the history that is kept it has none.
func (s *Versions[K, V]) AsOf(k K, t int64) (v V, from int64, ok bool, err error) {
	if t < s.horizon() {
		return v, 0, false, nil
	}
	key, err := s.encode(k)
	if err != nil {
		return v, 0, false, err
	}
	v, from, ok, err = s.view.GetAsOf(key, t)
	return v, from, ok, s.state(err)
}

// Get returns the latest value of a key and since when it has it.
func (s *Versions[K, V]) Get(k K) (v V, from int64, ok bool, err error) {
	return s.AsOf(k, math.MaxInt64)
}

// History calls fn for the versions of a key that were valid at from or later, up to those from to on, latest first,
// until it returns false. exists is false where it has no value from then on. fn must not change the store.
func (s *Versions[K, V]) History(k K, from, to int64, fn func(v V, since int64, exists bool) bool) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	from = max(from, s.horizon())
	return s.state(s.view.History(key, to, func(v V, since int64, exists bool) bool {
		return fn(v, since, exists) && since > from
	}))
}

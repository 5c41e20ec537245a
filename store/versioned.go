package store

import "github.com/tidemark/tidemark/codec"

// VersionedView is the typed form of a store with a history: per key the values it had, each valid from its time up to
// that of the next one.
type VersionedView[V any] struct{ v *View[V] }

const (
	versionNull  = 0
	versionValue = 1
)

// VersionedViewOf returns the view of a store of kind Versioned. history, in ms, is how long a version is kept after it was
// replaced. It is the same view on every call for one State.
func VersionedViewOf[V any](s *State, store string, c codec.Codec[V], history int64) (*VersionedView[V], error) {
	panic("")
}

// Put adds a version that is valid from t on. It reports false, and does nothing, if t < observed - history, where
// observed is the greatest t ever put.
func (v *VersionedView[V]) Put(key []byte, val V, t int64) (ok bool, err error) { panic("") }

// Delete says that key has no value from t on, as Put does.
func (v *VersionedView[V]) Delete(key []byte, t int64) (ok bool, err error) { panic("") }

// Get returns the latest version and the time from which it is valid.
func (v *VersionedView[V]) Get(key []byte) (val V, from int64, ok bool, err error) { panic("") }

// GetAsOf returns the version that is valid at t.
func (v *VersionedView[V]) GetAsOf(key []byte, t int64) (val V, from int64, ok bool, err error) {
	panic("")
}

package topology

import (
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// VersionedStore is a handle of a store with a history per key.
type VersionedStore[K, V any] struct {
	storeHandle[K, V]
	keep time.Duration
}

// Versioned declares a store of custom processors that keeps the history of every key for keep behind the watermark, and
// the latest value for ever. Its changelog is that of a versioned store of Kafka Streams. Otherwise it is as KeyValue.
// Options: With, KeyCodec, ValueCodec.
func Versioned[K, V any](id string, keep time.Duration, opts ...Option) *VersionedStore[K, V] {
	return &VersionedStore[K, V]{newStoreHandle[K, V](id, opts), keep}
}

func (h *VersionedStore[K, V]) attach(n *node) {
	h.list(n, storeKind{kind: store.Versioned}, func(owner *node) {
		h.keeps(owner, "keeps history for", h.keep)
		h.decl.open = func(b *compiler, s *processor.Scope, owner bool) any {
			return opened(b, &h.storeHandle, func(c valueCodec[V]) (*store.VersionedView[V], error) {
				return store.VersionedViewOf(b.env.State, h.id, c)
			}, func(v *store.VersionedView[V], _ valueCodec[V]) *processor.Versions[K, V] {
				return processor.NewVersions(h.config(b, s, h.keep, owner), v)
			})
		}
	})
}

func (h *VersionedStore[K, V]) of(s processor.Scoped) *processor.Versions[K, V] {
	return in[*processor.Versions[K, V]](&h.slot, s, "store", h.id)
}

// Put says that a key has a value from at on, in ms, up to the next later version. A value that stands for null says that
// it has none. It reports false, and does nothing, if at lies before the history that is kept.
func (h *VersionedStore[K, V]) Put(s processor.Scoped, k K, at int64, v V) (bool, error) {
	return h.of(s).Put(k, at, v)
}

// Delete says that a key has no value from at on, as Put does.
func (h *VersionedStore[K, V]) Delete(s processor.Scoped, k K, at int64) (bool, error) {
	return h.of(s).Delete(k, at)
}

// Get returns the latest value of a key, since when it has it, and whether it has one.
func (h *VersionedStore[K, V]) Get(s processor.Scoped, k K) (v V, since int64, ok bool, err error) {
	return h.of(s).Get(k)
}

// AsOf returns the value a key had at a time, in ms, since when, and whether it had one. Before the history that is kept
// it has none.
func (h *VersionedStore[K, V]) AsOf(s processor.Scoped, k K, at int64) (v V, since int64, ok bool, err error) {
	return h.of(s).AsOf(k, at)
}

// History calls fn for the versions of a key that were valid between from and to, in ms and both included, latest first,
// until it returns false. exists is false where the key has no value from then on. fn must not change the store.
func (h *VersionedStore[K, V]) History(s processor.Scoped, k K, from, to int64, fn func(v V, since int64, exists bool) bool) error {
	return h.of(s).History(k, from, to, fn)
}

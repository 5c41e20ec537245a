package topology

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// ListStore is a handle of a store with a list per key.
type ListStore[K, V any] struct{ storeHandle[K, V] }

// Lists declares a store of custom processors with a list of values per key. To append a value does not write the others
// again. Otherwise it is as KeyValue. Options: With, KeyCodec, ValueCodec.
func Lists[K, V any](id string, opts ...Option) *ListStore[K, V] {
	return &ListStore[K, V]{newStoreHandle[K, V](id, opts)}
}

func (h *ListStore[K, V]) attach(n *node) {
	h.list(n, storeKind{kind: store.List}, func(*node) {
		h.decl.open = func(b *compiler, s *processor.Scope, owner bool) any {
			return opened(b, &h.storeHandle, func(c valueCodec[V]) (*store.ListView[V], error) {
				return store.ListViewOf(b.env.State, h.id, c)
			}, func(v *store.ListView[V], _ valueCodec[V]) *processor.Lists[K, V] {
				return processor.NewLists(h.config(b, s, Forever, owner), v)
			})
		}
	})
}

func (h *ListStore[K, V]) of(s processor.Scoped) *processor.Lists[K, V] {
	return in[*processor.Lists[K, V]](&h.slot, s, "store", h.id)
}

// Append adds a value at the end of a key's list.
func (h *ListStore[K, V]) Append(s processor.Scoped, k K, v V) error { return h.of(s).Append(k, v) }

// Len returns how many values a key's list has.
func (h *ListStore[K, V]) Len(s processor.Scoped, k K) (int, error) { return h.of(s).Len(k) }

// Each calls fn for the values of a key's list in their order, until it returns false. fn must not change the list.
func (h *ListStore[K, V]) Each(s processor.Scoped, k K, fn func(V) bool) error {
	return h.of(s).Each(k, fn)
}

// PopFront removes up to n values from the front of a key's list.
func (h *ListStore[K, V]) PopFront(s processor.Scoped, k K, n int) error {
	return h.of(s).PopFront(k, n)
}

// Clear removes the list of a key.
func (h *ListStore[K, V]) Clear(s processor.Scoped, k K) error { return h.of(s).Clear(k) }

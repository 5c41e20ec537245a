package topology

import (
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// SessionStore is a handle of a store with any number of sessions per key.
type SessionStore[K, V any] struct {
	storeHandle[K, V]
	keep time.Duration
}

// Sessions declares a store of sessions of custom processors: values of a key and a span of time, which the processor
// merges as it likes. A session is dropped when the watermark has passed its end by keep, with a tombstone in the
// changelog. Otherwise it is as KeyValue. Options: With, KeyCodec, ValueCodec.
func Sessions[K, V any](id string, keep time.Duration, opts ...Option) *SessionStore[K, V] {
	return &SessionStore[K, V]{newStoreHandle[K, V](id, opts), keep}
}

func (h *SessionStore[K, V]) attach(n *node) {
	h.list(n, storeKind{kind: store.Session}, func(owner *node) {
		h.keeps(owner, "keeps sessions for", h.keep)
		h.decl.open = func(b *compiler, s *processor.Scope, owner bool) any {
			return opened(b, &h.storeHandle, func(c valueCodec[V]) (*store.SessionView[V], error) {
				return store.SessionViewOf(b.env.State, h.id, c)
			}, func(v *store.SessionView[V], c valueCodec[V]) *processor.Sessions[K, V] {
				return processor.NewSessions(h.config(b, s, h.keep, owner), v, c)
			})
		}
	})
}

func (h *SessionStore[K, V]) of(s processor.Scoped) *processor.Sessions[K, V] {
	return in[*processor.Sessions[K, V]](&h.slot, s, "store", h.id)
}

// Put sets the value of a session, new or not; its timestamp is that of the record in hand. A value that stands for null
// deletes it. It reports false, and does nothing, if a session with this end is kept no longer.
func (h *SessionStore[K, V]) Put(s processor.Scoped, k K, session window.Bounds, v V) (bool, error) {
	return h.of(s).Put(k, session, v)
}

// Delete removes the session with these bounds. It is no error if it is not there.
func (h *SessionStore[K, V]) Delete(s processor.Scoped, k K, session window.Bounds) error {
	return h.of(s).Delete(k, session)
}

// Overlapping calls fn for the sessions of a key that have a moment in common with a span, in ascending order of their
// ends and starts, until it returns false. fn may change the store.
func (h *SessionStore[K, V]) Overlapping(s processor.Scoped, k K, span window.Bounds, fn func(window.Bounds, V) bool) error {
	return h.of(s).Overlapping(k, span, fn)
}

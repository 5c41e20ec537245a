package topology

import (
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

type valueCodec[V any] = codec.Codec[V]

// WindowStore is a handle of a store with a value per window and key.
type WindowStore[K, V any] struct {
	storeHandle[K, V]
	window window.Window
	keep   time.Duration
}

// Windows declares a store of windows of custom processors, for windows that do not depend on the records. A window is
// kept until the watermark has passed its end by keep: from then on it is neither read nor written, and costs nothing.
// window.Window.Assign tells the windows of a time. Otherwise it is as KeyValue. Options: With, KeyCodec, ValueCodec.
func Windows[K, V any](id string, w window.Window, keep time.Duration, opts ...Option) *WindowStore[K, V] {
	return &WindowStore[K, V]{newStoreHandle[K, V](id, opts), w, keep}
}

func (h *WindowStore[K, V]) attach(n *node) {
	h.list(n, storeKind{kind: store.Window}, func(owner *node) {
		w := h.window
		if k := w.Kind(); k == window.KindSession || k == window.KindSliding {
			owner.t.problems.node(owner, "store %s: %s windows depend on the records: use Sessions", h.id, k)
		} else if err := w.Err(); err != nil {
			owner.t.problems.add(owner.seq, owner.name(), err, "store %s", h.id)
		}
		h.keeps(owner, "keeps "+w.String()+" for", h.keep)
		startOf := func(end int64) int64 { return w.Of(end).Start }
		h.decl.asked = queryable{windows: w.String(), startOf: startOf}
		base := h.decl.spec
		h.decl.spec = func() store.Spec {
			s := base()
			s.ValueSchema += " in " + w.String()
			s.Layout = store.WindowLayout(
				startOf,
				func(start int64) int64 { return w.StartingAt(start).End }, false)
			return s
		}
		h.decl.describe = append(h.decl.describe, func(s *StoreShape) { s.Window = windowShape(w) })
		h.decl.open = func(b *compiler, s *processor.Scope, owner bool) any {
			return opened(b, &h.storeHandle, func(c valueCodec[V]) (*store.WindowView[V], error) {
				return store.WindowViewOf(b.env.State, h.id, c)
			}, func(v *store.WindowView[V], c valueCodec[V]) *processor.Windows[K, V] {
				return processor.NewWindows(h.config(b, s, h.keep, owner), v, w, c)
			})
		}
	})
}

func (h *WindowStore[K, V]) of(s processor.Scoped) *processor.Windows[K, V] {
	return in[*processor.Windows[K, V]](&h.slot, s, "store", h.id)
}

// Get returns the value of a key in a window and whether there is one. The value must not be changed.
func (h *WindowStore[K, V]) Get(s processor.Scoped, w window.Bounds, k K) (V, bool, error) {
	return h.of(s).Get(w, k)
}

// Put sets the value of a key in a window; its timestamp is that of the record in hand. A value that stands for null
// deletes it. It reports false, and does nothing, if the window is kept no longer.
func (h *WindowStore[K, V]) Put(s processor.Scoped, w window.Bounds, k K, v V) (bool, error) {
	return h.of(s).Put(w, k, v)
}

// Delete removes a key from a window. It reports false if the window is kept no longer.
func (h *WindowStore[K, V]) Delete(s processor.Scoped, w window.Bounds, k K) (bool, error) {
	return h.of(s).Delete(w, k)
}

// Scan calls fn for the keys of a window, ordered by encoded key, until it returns false.
func (h *WindowStore[K, V]) Scan(s processor.Scoped, w window.Bounds, fn func(K, V) bool) error {
	return h.of(s).Scan(w, fn)
}

// Fetch calls fn for the windows of a key with from <= start <= to, in ms, in ascending order, until it returns false.
func (h *WindowStore[K, V]) Fetch(s processor.Scoped, k K, from, to int64, fn func(window.Bounds, V) bool) error {
	return h.of(s).Fetch(k, from, to, fn)
}

package topology

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// storeHandle is what the handles of the stores of custom processors have in common.
type storeHandle[K, V any] struct {
	slot
	id   string
	opts []Option
	o    options // once declared
	k    *encoding[K]
	v    *encoding[V]
	decl *storeDecl
}

func newStoreHandle[K, V any](id string, opts []Option) storeHandle[K, V] {
	return storeHandle[K, V]{id: id, opts: opts, k: encode[K](nil), v: encode[V](nil)}
}

// storeKind is the kind of a store and the options it has besides the codecs.
type storeKind struct {
	kind    store.Kind
	options []string
}

// list adds the store to a processor. The first one that lists it owns it: declared is called for that.
func (h *storeHandle[K, V]) list(n *node, kind storeKind, declared func(owner *node)) {
	if !h.bind(n, "store "+h.id) {
		return
	}
	n.stateful, n.custom.keyed = true, true
	if h.decl == nil {
		n.t.claimID(n, h.id, "store")
		h.o = readOptions(n, h.opts, append(kind.options, "KeyCodec", "ValueCodec", "StateVersion", "Migrate")...)
		h.k, h.v = override(n, h.o.key, h.k, "key"), override(n, h.o.value, h.v, "value")
		if d := h.o.ttl; slices.Contains(h.o.set, "TTL") && (d <= 0 || d%time.Millisecond != 0) {
			n.t.problems.node(n, "store %s: a time to live of %v is not one of whole milliseconds", h.id, d)
		}
		v, version := stored(n, h.o, h.v)
		h.v = v
		h.decl = declare(n, h.id, h.k, h.v)
		h.decl.versioned(version)
		if kind.kind != store.KeyValue {
			base := h.decl.spec
			h.decl.spec = func() store.Spec {
				s := base()
				s.Kind = kind.kind
				return s
			}
		}
		declared(n)
	} else {
		h.decl.use(n)
	}
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		s.Put(h.index, h.decl.open(b, s, h.decl.owner == n))
	})
}

// keeps makes the owner of a store keep its rows for a time behind its watermark.
func (h *storeHandle[K, V]) keeps(owner *node, what string, d time.Duration) {
	switch {
	case d == Forever:
		return
	case d <= 0 || d%time.Millisecond != 0:
		owner.t.problems.node(owner, "store %s: %s of %v is not one of whole milliseconds", h.id, what, d)
	}
	owner.timed = true
	owner.detail = append(owner.detail, fmt.Sprintf("%s %s %v", h.id, what, d))
}

// Forever is the retention of a store that drops nothing.
const Forever time.Duration = processor.Forever

// config is how a processor uses a store that keeps its rows for a while.
func (h *storeHandle[K, V]) config(b *compiler, s *processor.Scope, keep time.Duration, owner bool) processor.StoreConfig[K] {
	kc, _ := h.k.get()
	c := processor.StoreConfig[K]{Scope: s, Key: kc, Node: b.times[h.decl.owner], Keep: processor.Forever, Owner: owner}
	if keep != Forever {
		c.Keep = keep.Milliseconds()
	}
	return c
}

// opened is what a store's view and codec make of a handle in a task.
func opened[K, V, W, A any](b *compiler, h *storeHandle[K, V], view func(vc valueCodec[V]) (*W, error), access func(*W, valueCodec[V]) A) any {
	vc, err := h.v.get()
	if err == nil {
		var w *W
		if w, err = view(vc); err == nil {
			return access(w, vc)
		}
	}
	b.fail(h.id, err)
	return nil
}

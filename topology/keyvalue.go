package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// KeyValueStore is a handle of a key-value store.
type KeyValueStore[K, V any] struct{ storeHandle[K, V] }

// KeyValue declares a key-value store of custom processors. Its rows live with the task: a processor reaches those of
// its own partition. Processors that list the same handle share the store, and run in the same task. Options: With,
// KeyCodec, ValueCodec, TTL, WallTTL.
func KeyValue[K, V any](id string, opts ...Option) *KeyValueStore[K, V] {
	return &KeyValueStore[K, V]{newStoreHandle[K, V](id, opts)}
}

func (h *KeyValueStore[K, V]) attach(n *node) {
	h.list(n, storeKind{store.KeyValue, []string{"TTL"}}, func(owner *node) {
		if h.o.ttl == 0 {
			return
		}
		base := h.decl.spec
		h.decl.spec = func() store.Spec {
			s := base()
			s.Kind = store.Expiring
			return s
		}
		ttl, clock := " time to live ", "event time"
		if h.o.wall {
			owner.ticks, ttl, clock = true, " time to live by the clock ", "processing time"
		} else {
			owner.timed = true
		}
		owner.detail = append(owner.detail, h.id+ttl+h.o.ttl.String())
		h.decl.describe = append(h.decl.describe, func(s *StoreShape) { s.TTL = &TTLShape{h.o.ttl.String(), clock} })
		h.decl.open = h.openExpiring
	})
}

// openExpiring opens the store if its rows expire.
func (h *KeyValueStore[K, V]) openExpiring(b *compiler, s *processor.Scope, owner bool) any {
	kc, _ := h.k.get()
	vc, _ := h.v.get()
	view, err := store.ExpiringViewOf(b.env.State, h.id, vc)
	if err != nil {
		b.fail(h.id, err)
		return nil
	}
	l := processor.Lifetime{For: h.o.ttl.Milliseconds(), Owner: owner}
	if !h.o.wall {
		l.Node = b.times[h.decl.owner]
	}
	return processor.NewExpiringKV(s, view, kc, vc, l)
}

func (h *KeyValueStore[K, V]) kv(s processor.Scoped) *processor.KV[K, V] {
	return in[*processor.KV[K, V]](&h.slot, s, "store", h.id)
}

// Get returns the value of a key and whether there is one. The value must not be changed.
func (h *KeyValueStore[K, V]) Get(s processor.Scoped, k K) (V, bool, error) { return h.kv(s).Get(k) }

// Put sets the value of a key; its timestamp is that of the record in hand. A value that stands for null deletes it.
func (h *KeyValueStore[K, V]) Put(s processor.Scoped, k K, v V) error { return h.kv(s).Put(k, v) }

// Delete removes a key. It is no error if it is not there.
func (h *KeyValueStore[K, V]) Delete(s processor.Scoped, k K) error { return h.kv(s).Delete(k) }

// Scan calls fn for the rows from from on up to and without to, ordered by encoded key, until fn returns false. A nil
// bound is open.
func (h *KeyValueStore[K, V]) Scan(s processor.Scoped, from, to *K, fn func(K, V) bool) error {
	return h.kv(s).Scan(from, to, fn)
}

// ReadOnlyStore is a handle for reading a store that another operator keeps.
type ReadOnlyStore[K, V any] struct {
	slot
	id string
}

// ReadOnly lets a processor read the store of an aggregate, a table or another processor by its id. Both run in the same
// task then. Types are those of the store.
func ReadOnly[K, V any](id string) *ReadOnlyStore[K, V] { return &ReadOnlyStore[K, V]{id: id} }

func (h *ReadOnlyStore[K, V]) attach(n *node) {
	if !h.bind(n, "store "+h.id) {
		return
	}
	n.stateful, n.custom.keyed = true, true
	n.late = append(n.late, func(p *problems) {
		for _, d := range n.t.stores {
			if d.id != h.id {
				continue
			}
			if _, ok := d.encodings.(storeEncodings[K, V]); !ok {
				p.node(n, "store %q holds %v/%v, not %v/%v", h.id, d.key, d.value, reflect.TypeFor[K](), reflect.TypeFor[V]())
			}
			d.use(n)
			if k := d.spec().Kind; k != store.KeyValue && k != store.Expiring {
				p.node(n, "store %q is of kind %v, not key-value", h.id, k)
			}
			return
		}
		p.node(n, "unknown store %q", h.id)
	})
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		for _, d := range n.t.stores {
			if d.id == h.id {
				s.Put(h.index, d.open(b, s, false))
			}
		}
	})
}

// Get returns the value of a key and whether there is one. The value must not be changed.
func (h *ReadOnlyStore[K, V]) Get(s processor.Scoped, k K) (V, bool, error) {
	return in[*processor.KV[K, V]](&h.slot, s, "store", h.id).Get(k)
}

// Scan calls fn for the rows from from on up to and without to, ordered by encoded key, until fn returns false. A nil
// bound is open.
func (h *ReadOnlyStore[K, V]) Scan(s processor.Scoped, from, to *K, fn func(K, V) bool) error {
	return in[*processor.KV[K, V]](&h.slot, s, "store", h.id).Scan(from, to, fn)
}

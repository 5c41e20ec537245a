package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// KeyValueStore is a handle of a key-value store.
type KeyValueStore[K, V any] struct {
	slot
	id   string
	k    *encoding[K]
	v    *encoding[V]
	decl *storeDecl
}

// KeyValue declares a key-value store of custom processors. Its rows live with the task: a processor reaches those of
// its own partition. Processors that list the same handle share the store, and run in the same task. At most one Codecs
// is used.
func KeyValue[K, V any](id string, with ...Codecs[K, V]) *KeyValueStore[K, V] {
	var c Codecs[K, V]
	if len(with) > 0 {
		c = with[0]
	}
	return &KeyValueStore[K, V]{id: id, k: encode(c.Key), v: encode(c.Value)}
}

func (h *KeyValueStore[K, V]) attach(n *node) {
	if !h.bind(n, "store "+h.id) {
		return
	}
	if h.decl == nil {
		n.t.claimID(n, h.id, "store")
		h.decl = declare(n, h.id, h.k, h.v)
	} else {
		h.decl.use(n)
	}
	n.stateful, n.custom.keyed = true, true
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		putStore(b, s, h.index, h.id, h.k, h.v)
	})
}

// putStore fills the slot of a store.
func putStore[K, V any](b *compiler, s *processor.Scope, index int, id string, k *encoding[K], v *encoding[V]) {
	w := view(b, id, v)
	kc, _ := k.get()
	vc, _ := v.get()
	s.Put(index, processor.NewKV(s, w, kc, vc))
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
			return
		}
		p.node(n, "unknown store %q", h.id)
	})
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		for _, d := range n.t.stores {
			if d.id == h.id {
				e := d.encodings.(storeEncodings[K, V])
				putStore(b, s, h.index, h.id, e.k, e.v)
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

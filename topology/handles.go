package topology

import (
	"fmt"
	"reflect"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
)

// Handle is what a custom processor may use: a store, a side output, or a promise. Handles are made once, when the
// topology is declared, listed in Process, and used while it runs.
type Handle interface {
	// attach lists the handle for a processor.
	attach(n *node)
}

// custom is what a processor node knows about its handles.
type custom struct {
	keyed, keeps bool
	slots        []func(b *compiler, s *processor.Scope) // fill the scope of a task
}

// slot is the place of a handle in the scopes of its topology's processors.
type slot struct {
	t     *Topology
	index int
}

// bind gives the handle its place. It reports a handle that already belongs to another topology.
func (s *slot) bind(n *node, what string) bool {
	switch s.t {
	case n.t:
	case nil:
		s.t, s.index = n.t, n.t.handles
		n.t.handles++
	default:
		n.t.problems.node(n, "%s belongs to another topology, %q", what, s.t.name)
		return false
	}
	return true
}

// in returns what the handle stands for where s runs. Using a handle that was not listed is a mistake in the program.
func in[T any](h *slot, s processor.Scoped, what, name string) T {
	v, ok := s.Scope().Slot(h.index).(T)
	if !ok || h.t == nil {
		panic(fmt.Sprintf("topology: %s %s is used by a processor that does not list it", what, name))
	}
	return v
}

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

// SideOutput is a handle of an output beside a processor's main one.
type SideOutput[K, V any] struct {
	slot
	name string
	k    *encoding[K]
	v    *encoding[V]
	n    *node
}

// Output declares a side output. What goes into it comes out of Processed.Side.
func Output[K, V any](name string) *SideOutput[K, V] {
	return &SideOutput[K, V]{name: name, k: encode[K](nil), v: encode[V](nil)}
}

func (h *SideOutput[K, V]) attach(n *node) {
	if h.n != nil {
		n.t.problems.node(n, "output %q is already one of %s", h.name, h.n.in[0].name())
		return
	}
	if !h.bind(n, "output "+h.name) {
		return
	}
	for _, o := range n.out {
		if o.kind == kindSide && o.label == h.name {
			n.t.problems.node(n, "two outputs are called %q", h.name)
		}
	}
	if h.name == "" {
		n.t.problems.node(n, "an output has no name")
	}
	h.n = n.t.add(&node{
		kind: kindSide, label: h.name,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[V](),
	}, n)
	needs(h.n, h.k, "key")
	h.n.checks = append(h.n.checks, func(p *problems) {
		if len(h.n.out) == 0 {
			p.node(n, "output %q leads nowhere", h.name)
		}
	})
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		s.Put(h.index, newPort(b, s, h.n, n, h.k, streamOut[K, V](b, h.n)))
	})
}

// newPort returns an output of a processor in a task.
func newPort[K, V any](b *compiler, s *processor.Scope, n, proc *node, k *encoding[K], next processor.Func[K, V]) *processor.Port[K, V] {
	kc, err := k.get()
	if err != nil {
		b.fail(n.name(), err)
		return nil
	}
	return processor.NewPort(s, kc, proc.custom.keeps, next)
}

// Emit passes a record on to the output, with the timestamp and headers in hand.
func (h *SideOutput[K, V]) Emit(s processor.Scoped, k K, v V) { h.port(s).EmitNow(k, v) }

// EmitAt passes a record on with a timestamp of its own, in ms since the epoch.
func (h *SideOutput[K, V]) EmitAt(s processor.Scoped, time int64, k K, v V) {
	h.port(s).Emit(time, k, v)
}

func (h *SideOutput[K, V]) port(s processor.Scoped) *processor.Port[K, V] {
	return in[*processor.Port[K, V]](&h.slot, s, "output", h.name)
}

// KeepsKey promises that a processor emits each record under the key of the record it got, so that a stateful operator
// may follow without a KeyBy. A record that breaks the promise fails.
func KeepsKey() Handle { return keepsKey{} }

type keepsKey struct{}

func (keepsKey) attach(n *node) {
	n.custom.keeps, n.changesKey = true, false
	n.detail = append(n.detail, "keeps the key")
}

// keepsKeyOf checks that the promise can be kept: the key must be encoded alike on both sides.
func keepsKeyOf[K, K2 any](p *problems, n *node, in *encoding[K], out *encoding[K2]) {
	a, err := in.get()
	b, err2 := out.get()
	if err != nil || err2 != nil {
		return // reported elsewhere
	}
	if _, ok := any(a).(codec.Codec[K2]); !ok || a.Schema() != b.Schema() {
		p.node(n, "promises to keep keys, but takes %v and emits %v", reflect.TypeFor[K](), reflect.TypeFor[K2]())
	}
}

package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

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

package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// KeyBy sets the key. If a stateful operator or a processor with stores follows before the next KeyBy or topic, it is a
// cut: the records go through the repartition topic <app>-<id>-repartition, and everything behind it runs in another
// sub-topology, partitioned by the new key. A null key goes to the partition of the record's task. Options: With,
// KeyCodec, ValueCodec, Partitions.
func (s *Stream[K, V]) KeyBy[K2 any](id string, f func(V) K2, opts ...Option) *Stream[K2, V] {
	return keyBy(s, id, f, uses{value: true}, func(_ *Context, _ K, v V) (K2, error) { return f(v), nil }, opts)
}

// TryKeyBy is KeyBy with context, key and error.
func (s *Stream[K, V]) TryKeyBy[K2 any](id string, f func(c *Context, k K, v V) (K2, error), opts ...Option) *Stream[K2, V] {
	return keyBy(s, id, f, uses{key: true, value: true}, f, opts)
}

func keyBy[K, V, K2 any](s *Stream[K, V], id string, given any, u uses, f func(*Context, K, V) (K2, error), opts []Option) *Stream[K2, V] {
	n, k, v := keyNode(s.n, s.k, s.v, id, given, u, f, opts)
	return &Stream[K2, V]{n, k, v}
}

// keyNode adds a KeyBy below the node of a stream.
func keyNode[K, V, K2 any](in *node, from *encoding[K], val *encoding[V], id string, given any, u uses, f func(*Context, K, V) (K2, error), opts []Option) (*node, *encoding[K2], *encoding[V]) {
	n := in.t.add(&node{
		kind: kindKeyBy, id: id, uses: u, passesVal: true,
		keyType: reflect.TypeFor[K2](), valueType: reflect.TypeFor[V](),
	}, in)
	n.t.claimID(n, id, n.kind)
	n.require(given, "the function")
	o := readOptions(n, opts, "KeyCodec", "ValueCodec", "Partitions")
	n.partitions = o.partitions
	k := override(n, o.key, retype[K2](from), "key")
	v := override(n, o.value, val, "value")
	needsKey(n, k)
	n.atCut = func(p *problems) {
		if n.pre != nil {
			return // the records are not written
		}
		if _, err := v.get(); err != nil {
			p.add(n.seq, n.name(), err, "no codec for the value")
		}
	}
	n.schemas = func() (string, string) {
		if n.pre != nil {
			return k.schema(), n.pre.schema()
		}
		return k.schema(), v.schema()
	}
	n.compile = func(b *compiler) any {
		kc, _ := k.get()
		if n.cut && n.pre != nil {
			add := n.pre.write(b, n).(func(*Context, []byte, V) error)
			return processor.RepartitionPartial(b.op(n), f, kc, add)
		}
		if n.cut {
			sink := processor.Sink[K2, V]{Op: b.op(n), Index: b.sub.sinkIndex(n), Key: kc, PassValue: same(val, v), Origin: n.origins}
			sink.Value, _ = v.get()
			return processor.Repartition(f, sink)
		}
		next := streamOut[K2, V](b, n)
		if v != val && !same(val, v) {
			next = processor.Recode(next)
		}
		return processor.KeyBy(b.op(n), f, kc, next)
	}
	n.read = func(b *compiler) processor.Source {
		if n.pre != nil {
			return n.pre.read(b, n)
		}
		return readTopic(b, n, k, v)
	}
	return n, k, v
}

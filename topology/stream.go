package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// Context is what a long form knows about the record in hand.
type Context = processor.Context

// Stream is a stream of records. Every method continues it; a stream may be continued any number of times, and each
// continuation gets all records, in the order of declaration.
type Stream[K, V any] struct {
	n *node
	k *encoding[K]
	v *encoding[V]
}

// Stream reads a topic. All streams and tables of one topic share one source and must agree on types and codecs. At
// most one Codecs is used; without it, or where it is nil, the types' defaults are.
func (t *Topology) Stream[K, V any](topic string, with ...Codecs[K, V]) *Stream[K, V] {
	n, k, v := source(t, topic, with)
	return &Stream[K, V]{n, k, v}
}

// source returns the node of a topic, new or shared.
func source[K, V any](t *Topology, topic string, with []Codecs[K, V]) (*node, *encoding[K], *encoding[V]) {
	var c Codecs[K, V]
	if len(with) > 0 {
		c = with[0]
	}
	return sourceOf(t, topic, encode(c.Key), encode(c.Value), len(with))
}

// sourceEncodings is what a source node remembers for the next reader of its topic.
type sourceEncodings[K, V any] struct {
	k *encoding[K]
	v *encoding[V]
}

func sourceOf[K, V any](t *Topology, topic string, k *encoding[K], v *encoding[V], settings int) (*node, *encoding[K], *encoding[V]) {
	first := t.sources[topic]
	if first != nil && first.keyType == reflect.TypeFor[K]() && first.valueType == reflect.TypeFor[V]() {
		enc := first.shared.(sourceEncodings[K, V])
		first.checks = append(first.checks, func(p *problems) {
			if k.explicit || v.explicit || enc.k.explicit || enc.v.explicit {
				if a, b := enc.k.schema()+"/"+enc.v.schema(), k.schema()+"/"+v.schema(); a != b {
					p.node(first, "read with different settings: codecs %s and %s", a, b)
				}
			}
		})
		return first, enc.k, enc.v
	}
	n := t.add(&node{
		kind: kindSource, label: topic,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[V](),
		shared: sourceEncodings[K, V]{k, v},
	})
	n.schemas = func() (string, string) { return k.schema(), v.schema() }
	n.read = func(b *compiler) processor.Source { return readTopic(b, n, k, v) }
	needs(n, k, "key")
	needs(n, v, "value")
	if settings > 1 {
		t.problems.node(n, "%d settings of one topic", settings)
	}
	switch {
	case first != nil:
		t.problems.node(n, "read with different settings: as %v/%v and as %v/%v",
			first.keyType, first.valueType, n.keyType, n.valueType)
	default:
		t.sources[topic] = n
		if why := badTopic(topic); why != "" {
			t.problems.node(n, "topic %q %s", topic, why)
		}
	}
	return n, k, v
}

// then adds an operator that passes keys on.
func then[K, V any](s *Stream[K, V], n *node) *node {
	n.keyType = reflect.TypeFor[K]()
	if n.valueType == nil {
		n.valueType = reflect.TypeFor[V]()
	}
	n.passesKey = true
	return s.n.t.add(n, s.n)
}

// Filter keeps the records pred accepts.
func (s *Stream[K, V]) Filter(pred func(V) bool) *Stream[K, V] {
	n := then(s, &node{kind: kindFilter, uses: uses{value: true}, passesVal: true})
	n.require(pred, "the predicate")
	n.compile = func(b *compiler) any { return processor.Filter(b.op(n), pred, streamOut[K, V](b, n)) }
	return &Stream[K, V]{n, s.k, s.v}
}

// TryFilter is Filter with context, key and error.
func (s *Stream[K, V]) TryFilter(pred func(c *Context, k K, v V) (bool, error)) *Stream[K, V] {
	n := then(s, &node{kind: kindFilter, uses: uses{key: true, value: true}, passesVal: true})
	n.require(pred, "the predicate")
	n.compile = func(b *compiler) any { return processor.TryFilter(b.op(n), pred, streamOut[K, V](b, n)) }
	return &Stream[K, V]{n, s.k, s.v}
}

// Map replaces the value.
func (s *Stream[K, V]) Map[R any](f func(V) R) *Stream[K, R] {
	n := then(s, &node{kind: kindMap, uses: uses{value: true}, valueType: reflect.TypeFor[R]()})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.Map(b.op(n), f, streamOut[K, R](b, n)) }
	return &Stream[K, R]{n, s.k, retype[R](s.v)}
}

// TryMap is Map with context, key and error.
func (s *Stream[K, V]) TryMap[R any](f func(c *Context, k K, v V) (R, error)) *Stream[K, R] {
	n := then(s, &node{kind: kindMap, uses: uses{key: true, value: true}, valueType: reflect.TypeFor[R]()})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.TryMap(b.op(n), f, streamOut[K, R](b, n)) }
	return &Stream[K, R]{n, s.k, retype[R](s.v)}
}

// FlatMap emits any number of values for one. emit is valid until f returns.
func (s *Stream[K, V]) FlatMap[R any](f func(v V, emit func(R))) *Stream[K, R] {
	n := then(s, &node{kind: kindFlatMap, uses: uses{value: true}, valueType: reflect.TypeFor[R]()})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.FlatMap(b.op(n), f, streamOut[K, R](b, n)) }
	return &Stream[K, R]{n, s.k, retype[R](s.v)}
}

// TryFlatMap is FlatMap with context, key and error. An error of emit is of what is downstream; f may return it.
func (s *Stream[K, V]) TryFlatMap[R any](f func(c *Context, k K, v V, emit func(R) error) error) *Stream[K, R] {
	n := then(s, &node{kind: kindFlatMap, uses: uses{key: true, value: true}, valueType: reflect.TypeFor[R]()})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.TryFlatMap(b.op(n), f, streamOut[K, R](b, n)) }
	return &Stream[K, R]{n, s.k, retype[R](s.v)}
}

// Peek shows every value to f and passes the record on.
func (s *Stream[K, V]) Peek(f func(V)) *Stream[K, V] {
	n := then(s, &node{kind: kindPeek, uses: uses{value: true}, passesVal: true})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.Peek(b.op(n), f, streamOut[K, V](b, n)) }
	return &Stream[K, V]{n, s.k, s.v}
}

// TryPeek is Peek with context, key and error.
func (s *Stream[K, V]) TryPeek(f func(c *Context, k K, v V) error) *Stream[K, V] {
	n := then(s, &node{kind: kindPeek, uses: uses{key: true, value: true}, passesVal: true})
	n.require(f, "the function")
	n.compile = func(b *compiler) any { return processor.TryPeek(b.op(n), f, streamOut[K, V](b, n)) }
	return &Stream[K, V]{n, s.k, s.v}
}

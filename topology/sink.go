package topology

import "github.com/tidemark/tidemark/processor"

// To writes the stream to a topic. Options: With, KeyCodec, ValueCodec.
func (s *Stream[K, V]) To(topic string, opts ...Option) {
	sinkTo(s.n, topic, s.k, s.v, opts, false)
}

// Through writes the stream to a topic and continues with what is read from it, in a sub-topology of its own. The topic
// is the user's: it must exist, and others may write to it. Options: With, KeyCodec, ValueCodec.
func (s *Stream[K, V]) Through(topic string, opts ...Option) *Stream[K, V] {
	k, v := sinkTo(s.n, topic, s.k, s.v, opts, false)
	n, k, v := sourceOf(s.n.t, topic, k, v, 0)
	return &Stream[K, V]{n, k, v}
}

// sinkTo adds a sink below the node of a stream or table.
func sinkTo[K, V any](from *node, topic string, k *encoding[K], v *encoding[V], opts []Option, table bool) (*encoding[K], *encoding[V]) {
	n := from.t.add(&node{kind: kindSink, label: topic}, from)
	o := readOptions(n, opts, "KeyCodec", "ValueCodec")
	kout := override(n, o.key, k, "key")
	vout := override(n, o.value, v, "value")
	n.schemas = func() (string, string) { return kout.schema(), vout.schema() }
	if why := badTopic(topic); why != "" {
		n.t.problems.node(n, "topic %q %s", topic, why)
	}
	if kout != k { // else checked where the key was set
		needs(n, kout, "key")
	}
	needs(n, vout, "value")
	passKey := func() bool { return same(k, kout) }
	passValue := func() bool { return same(v, vout) }
	n.checks = append(n.checks, func(*problems) { n.uses = uses{key: !passKey(), value: !passValue()} })
	n.compile = func(b *compiler) any {
		s := processor.Sink[K, V]{
			Op: b.op(n), Index: b.sub.sinkIndex(n),
			PassKey: passKey(), PassValue: passValue(),
		}
		s.Key, _ = kout.get()
		s.Value, _ = vout.get()
		if table {
			return s.Table()
		}
		return s.Stream()
	}
	return kout, vout
}

// same reports whether bytes of a are bytes of b.
func same[T any](a, b *encoding[T]) bool {
	if a == b || !a.explicit && !b.explicit {
		return true
	}
	x, _ := a.get()
	y, _ := b.get()
	return sameCodec(x, y)
}

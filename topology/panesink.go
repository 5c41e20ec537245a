package topology

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// To writes panes to a topic. The key of a record is the key and the start of the window, as Kafka Streams writes
// windowed keys: the key's bytes and the start in ms, 8 bytes big-endian; for sessions the key, the last ms and the
// start. The partition is that of the key alone, so that all panes of a key are in one partition, in their order. The
// record's timestamp is the latest event time in the pane. Headers say which window it is and which pane (package
// window has their names and their forms); a JSON object as value gets the members "pane", "window_start", "window_end"
// and "watermark" as well, unless PlainValue is given. A window that is gone is a null value. Options: With, KeyCodec,
// ValueCodec, PlainValue, PaneKey.
func (p *Panes[K, A]) To(topic string, opts ...Option) {
	n := p.n.t.add(&node{kind: kindSink, label: topic}, p.n)
	o := readOptions(n, opts, "KeyCodec", "ValueCodec", "PlainValue", "PaneKey")
	k := override(n, o.key, p.k, "key")
	v := override(n, o.value, p.v, "value")
	n.schemas = func() (string, string) { return k.schema(), v.schema() }
	if why := badTopic(topic); why != "" {
		n.t.problems.node(n, "topic %q %s", topic, why)
	}
	if k != p.k {
		needs(n, k, "key")
	}
	needs(n, v, "value")
	same := func() bool { return same(p.k, k) }
	n.checks = append(n.checks, func(*problems) { n.uses = uses{key: !same(), value: true} })
	n.compile = func(b *compiler) any {
		s := processor.PaneSink[K, A]{
			Op: b.op(n), Index: b.sub.sinkIndex(n), PassKey: same(), Session: n.overSessions(), Embed: !o.plainValue, Name: o.paneKey,
		}
		s.Key, _ = k.get()
		s.Value, _ = v.get()
		return s.Run()
	}
}

// PlainValue keeps Panes.To from adding members to JSON values.
func PlainValue() Option {
	return option{"PlainValue", func(s *options) { s.plainValue = true }}
}

// PaneKey makes Panes.To write keys of another form: name appends to dst what the record's key is, from the bytes of the
// user's key and the window. Records of one window must have one key, those of different windows different ones. The
// partition stays that of the user's key.
func PaneKey(name func(dst, key []byte, w window.Bounds) []byte) Option {
	return option{"PaneKey", func(s *options) { s.paneKey = name }}
}

// overSessions reports whether the panes of a node are those of sessions.
func (n *node) overSessions() bool {
	for m := n; len(m.in) > 0; m = m.in[0] {
		if m.sessions {
			return true
		}
		if len(m.stores) > 0 {
			return false
		}
	}
	return false
}

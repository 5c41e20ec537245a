package topology

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/window"
)

// Option changes how one operator works. An option that means nothing to the operator it is given to is a build error.
type Option interface{ apply(*options) }

type options struct {
	set          []string // names of the options given
	key, value   any      // codec.Codec of the operator's key and value type
	partitions   int
	everyUpdate  bool
	plainValue   bool
	preAggregate bool
	paneKey      func(dst, key []byte, w window.Bounds) []byte
	ttl          time.Duration
	wall         bool // ttl is of processing time
	anyTime      bool
	salts        int
	id           any // codec.Codec of the ids of a Dedup
	version      int
	migrations   []migration
}

// given reports whether an option was given.
func (s *options) given(name string) bool { return slices.Contains(s.set, name) }

type option struct {
	name string
	f    func(*options)
}

func (o option) apply(s *options) {
	s.set = append(s.set, o.name)
	o.f(s)
}

// Codecs are the codecs of a topic. It is an Option for To, Through and KeyBy, and the setting of a source.
type Codecs[K, V any] struct {
	Key   codec.Codec[K] // nil: the default of K
	Value codec.Codec[V] // nil: the default of V
}

// With returns the codecs of a topic: t.Stream("ads", topology.With(codec.String(), codec.JSON[Ad]())).
func With[K, V any](key codec.Codec[K], value codec.Codec[V]) Codecs[K, V] {
	return Codecs[K, V]{key, value}
}

func (c Codecs[K, V]) apply(s *options) {
	if c.Key != nil {
		KeyCodec(c.Key).apply(s)
	}
	if c.Value != nil {
		ValueCodec(c.Value).apply(s)
	}
}

// KeyCodec sets the codec of the key an operator writes.
func KeyCodec[K any](c codec.Codec[K]) Option {
	return option{"KeyCodec", func(s *options) { s.key = c }}
}

// ValueCodec sets the codec of the value an operator writes or stores.
func ValueCodec[V any](c codec.Codec[V]) Option {
	return option{"ValueCodec", func(s *options) { s.value = c }}
}

// Partitions fixes the partition count of a KeyBy's repartition topic. Without it the count is that of the topics the
// operators behind it need it to match, else the largest count of what is upstream.
func Partitions(n int) Option {
	return option{"Partitions", func(s *options) { s.partitions = n }}
}

// EveryUpdate makes an aggregate emit each change as it happens. Without it the latest value per key is emitted at the
// commit.
func EveryUpdate() Option {
	return option{"EveryUpdate", func(s *options) { s.everyUpdate = true }}
}

// TTL makes the rows of a KeyValue store good for d of event time since their last write: a record of that time or later
// does not see them, and they are dropped when the watermark comes to it, with a tombstone in the changelog. A late write
// does not shorten what a newer one has given. It survives a restore.
func TTL(d time.Duration) Option {
	return option{"TTL", func(s *options) { s.ttl, s.wall = d, false }}
}

// WallTTL is TTL by processing time: rows are good for d since the time at which they were last written.
func WallTTL(d time.Duration) Option {
	return option{"TTL", func(s *options) { s.ttl, s.wall = d, true }}
}

// readOptions applies opts for a node and reports those it has no use for.
func readOptions(n *node, opts []Option, allowed ...string) options {
	var s options
	for _, o := range opts {
		if o == nil {
			n.t.problems.node(n, "an option is nil")
			continue
		}
		o.apply(&s)
	}
	for _, name := range s.set {
		if !slices.Contains(allowed, name) {
			n.t.problems.node(n, "option %s has no meaning here", name)
		}
	}
	if slices.Contains(s.set, "Partitions") && s.partitions < 1 {
		n.t.problems.node(n, "Partitions(%d): a topic has at least one partition", s.partitions)
	}
	if s.everyUpdate {
		n.detail = append(n.detail, "every update")
	}
	return s
}

// override returns the encoding an option asks for, else e.
func override[T any](n *node, given any, e *encoding[T], what string) *encoding[T] {
	if given == nil {
		return e
	}
	c, ok := given.(codec.Codec[T])
	if !ok {
		n.t.problems.node(n, "the %s codec is a %s, which is not for %v", what, codecName(given), reflect.TypeFor[T]())
		return e
	}
	return encode(c)
}

func codecName(c any) string {
	if s, ok := c.(interface{ Schema() string }); ok {
		return fmt.Sprintf("codec of %q", s.Schema())
	}
	return fmt.Sprintf("%T", c)
}

package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// bucketWidth is the width of the buckets of a Dedup that matches by event time, in ms.
const bucketWidth = 60_000

// maxSalts is how many tasks Salted can spread a key over.
const maxSalts = 1 << 16

// Dedup drops records whose id has passed before. f returns the id of an event; ids are told apart within one key, so
// duplicates must have the same key, and a KeyBy before Dedup is a cut. An id that stands for null (codec.Nullable) is
// none: such a record passes.
//
// Two records are duplicates if they have the same key, id and event time: that is what a producer that sends again
// makes. With MatchAnyTime they are if their event times are at most horizon apart, counted from the last one that
// passed: of an id at 0, 51, 60, 100 and 130 with a horizon of 50, those at 0, 51 and 130 pass.
//
// An id is remembered until the watermark has passed its event time by horizon, rounded up to a whole minute of event
// time; with MatchAnyTime for twice that long. A record too old for that goes to the late topic with reason
// dedup_horizon: it never passes twice. The memory is part of the state, changelog included; an id costs 20 bytes and its
// framing. Options: MatchAnyTime, Salted, IDCodec, Partitions with Salted.
func (s *Stream[K, V]) Dedup[ID any](id string, f func(V) ID, horizon time.Duration, opts ...Option) *Stream[K, V] {
	d := dedup(s, id, uses{value: true}, func(_ *Context, _ K, v V) (ID, error) { return f(v), nil },
		func(_ *Context, _ []byte, v V) (ID, error) { return f(v), nil }, horizon, opts)
	d.n.require(f, "the function")
	return d
}

// TryDedup is Dedup with context and error. With Salted, the context's key is one with a salt.
func (s *Stream[K, V]) TryDedup[ID any](id string, f func(c *Context, v V) (ID, error), horizon time.Duration, opts ...Option) *Stream[K, V] {
	d := dedup(s, id, uses{value: true}, func(c *Context, _ K, v V) (ID, error) { return f(c, v) },
		func(c *Context, _ []byte, v V) (ID, error) { return f(c, v) }, horizon, opts)
	d.n.require(f, "the function")
	return d
}

// MatchAnyTime makes Dedup match ids whatever the event times, as long as they are at most the horizon apart. A record
// costs up to 21 probes instead of one, and ids are kept twice as long.
func MatchAnyTime() Option {
	return option{"MatchAnyTime", func(s *options) { s.anyTime = true }}
}

// Salted makes Dedup spread the ids of every key over n tasks, for keys so frequent that one task cannot keep up: the
// records go through the repartition topic <id>-salted, by key and hash of the id modulo n, and under their own key
// again from there, through the repartition topic <id>-key if something behind needs it. Each hop costs about a commit
// interval. n is at most 65,536. With another n the state is another one: what was remembered under the old n is not
// readable.
func Salted(n int) Option {
	return option{"Salted", func(s *options) { s.salts = n }}
}

// IDCodec sets the codec ids are encoded with before they are hashed. It must be deterministic.
func IDCodec[ID any](c codec.Codec[ID]) Option {
	return option{"IDCodec", func(s *options) { s.id = c }}
}

// idOf returns the id of a record.
type idOf[K, V, ID any] = func(*Context, K, V) (ID, error)

func dedup[K, V, ID any](s *Stream[K, V], id string, u uses, f idOf[K, V, ID], salted idOf[[]byte, V, ID], horizon time.Duration, opts []Option) *Stream[K, V] {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	if !slices.Contains(o.set, "Salted") {
		return dedupStage(s, id, u, f, horizon, opts)
	}
	ids := encode[ID](nil)
	if c, ok := o.id.(codec.Codec[ID]); ok {
		ids = encode(c)
	}
	var partitions []Option
	if o.partitions != 0 {
		partitions = []Option{Partitions(o.partitions)}
	}
	spread := keyBy(s, id+"-salted", f, u, func(c *Context, k K, v V) ([]byte, error) {
		v2, err := f(c, k, v)
		if err != nil {
			return nil, err
		}
		codec, err := ids.get()
		if err != nil {
			return nil, err
		}
		return processor.Salt(c, codec, v2, o.salts)
	}, append(partitions, KeyCodec(codec.Bytes())))
	if o.salts < 1 || o.salts > maxSalts {
		s.n.t.problems.node(spread.n, "Salted(%d): from 1 to %d", o.salts, maxSalts)
	}
	once := dedupStage(spread, id, u, salted, horizon, opts)
	needsKey(once.n, s.k)
	needs(once.n, ids, "id")
	back := keyBy(once, id+"-key", f, uses{key: true}, func(_ *Context, k []byte, _ V) (K, error) {
		kc, err := s.k.get()
		if err != nil {
			var zero K
			return zero, err
		}
		return kc.Decode(processor.Unsalt(k))
	}, nil)
	back.k = s.k
	return back
}

// dedupStage adds the operator itself.
func dedupStage[K, V, ID any](s *Stream[K, V], id string, u uses, f idOf[K, V, ID], horizon time.Duration, opts []Option) *Stream[K, V] {
	n := then(s, &node{kind: kindDedup, id: id, uses: u, passesVal: true, stateful: true, timed: true})
	n.t.claimID(n, id, kindDedup)
	o := readOptions(n, opts, "MatchAnyTime", "Salted", "IDCodec", "Partitions")
	if !slices.Contains(o.set, "Salted") && o.partitions != 0 {
		n.t.problems.node(n, "Partitions means something with Salted only")
	}
	ids := override(n, o.id, encode[ID](nil), "id")
	needsKey(n, ids)
	h := horizon.Milliseconds()
	switch {
	case horizon <= 0:
		n.t.problems.node(n, "a Dedup needs a horizon: what it remembers would grow without end")
		h = 1
	case horizon%time.Millisecond != 0:
		n.t.problems.node(n, "the horizon %v has fractions of a millisecond", horizon)
		h = max(h, 1)
	}
	width := int64(bucketWidth)
	n.detail = append(n.detail, "horizon "+horizon.String())
	if o.anyTime {
		width = (h + 9) / 10
		n.detail = append(n.detail, "any time")
	}
	if o.salts > 0 {
		n.detail = append(n.detail, fmt.Sprintf("salted %d", o.salts))
	}
	d := declareIDs(n, id, s.k, ids, strings.Join(append([]string{(time.Duration(width) * time.Millisecond).String()}, n.detail[1:]...), ", "))
	d.describe = append(d.describe, func(s *StoreShape) {
		s.Dedup = &DedupShape{Horizon: horizon.String(), Bucket: duration(width), AnyTime: o.anyTime, Salts: o.salts}
	})
	n.late = append(n.late, func(p *problems) {
		if s.n.retracting() {
			p.node(n, "its input retracts results, which are not events with an id")
		}
	})
	n.compile = func(b *compiler) any {
		c, err := ids.get()
		if err == nil {
			var run processor.Func[K, V]
			run, err = processor.NewDedup(b.env.State, processor.DedupConfig[K, V, ID]{
				Op: b.op(n), Store: id, Node: b.times[n], ID: f, Codec: c,
				Horizon: h, Width: width, AnyTime: o.anyTime, Next: streamOut[K, V](b, n),
			})
			if err == nil {
				return run
			}
		}
		b.fail(n.name(), err)
		return processor.Func[K, V](nil)
	}
	return &Stream[K, V]{n, s.k, s.v}
}

// idStore is what a store of ids has for encodings: nobody but its operator can read it.
type idStore struct{}

// declareIDs adds the store of a Dedup.
func declareIDs[K, ID any](n *node, id string, k *encoding[K], ids *encoding[ID], how string) *storeDecl {
	needsKey(n, k)
	d := declareStore[K, ID](n, id, idStore{}, func() store.Spec {
		return store.Spec{
			ID: id, Kind: store.Dedup, KeySchema: k.schema(), ValueSchema: "ids " + ids.schema() + " in " + how, Changelog: true,
		}
	})
	d.valueSchema = func() string { return "ids " + ids.schema() }
	return d
}

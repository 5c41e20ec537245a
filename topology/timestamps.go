package topology

import (
	"reflect"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/watermark"
)

// Timestamps says when the events of a topic happened and how far behind the newest one older ones may still come. It
// stands right behind the source, once per topic. f returns the time of an event; the zero Time means that it has none,
// see watermark.OnMissing. A nil f takes the record's timestamp. Without Timestamps, a topic whose time is asked for has
// the records' timestamps and watermark.New's defaults.
func (s *Stream[K, V]) Timestamps(f func(V) time.Time, opts ...watermark.Option) *Stream[K, V] {
	var long func(*Context, K, V) (int64, bool, error)
	if f != nil {
		long = func(_ *Context, _ K, v V) (int64, bool, error) {
			at := f(v)
			return at.UnixMilli(), !at.IsZero(), nil
		}
	}
	return timestamps(s, long, uses{value: f != nil}, opts)
}

// TryTimestamps is Timestamps with context, key and error.
func (s *Stream[K, V]) TryTimestamps(f func(c *Context, k K, v V) (time.Time, error), opts ...watermark.Option) *Stream[K, V] {
	s.n.require(f, "the function of TryTimestamps")
	return timestamps(s, func(c *Context, k K, v V) (int64, bool, error) {
		at, err := f(c, k, v)
		return at.UnixMilli(), !at.IsZero(), err
	}, uses{key: true, value: true}, opts)
}

// timing is what a source knows about the time of its records.
type timing struct {
	given    bool
	extract  any // func(*Context, K, V) (int64, bool, error), nil for the record's timestamp
	uses     uses
	settings watermark.Settings
}

func timestamps[K, V any](s *Stream[K, V], extract func(*Context, K, V) (int64, bool, error), u uses, opts []watermark.Option) *Stream[K, V] {
	n := s.n
	if n.kind != kindSource {
		n.t.problems.node(n, "Timestamps belongs right behind the source of a topic")
		return s
	}
	set, err := watermark.New(opts...)
	if err != nil {
		n.t.problems.add(n.seq, n.name(), err, "time settings")
		return s
	}
	if v := reflect.TypeFor[V](); set.ValueType != nil && set.ValueType != v {
		n.t.problems.node(n, "%s looks at values of type %v, the topic's are %v", set.Name, set.ValueType, v)
		return s
	}
	if n.time.given {
		n.t.problems.node(n, "the time settings of one topic are given twice")
		return s
	}
	if set.NeedsValue {
		u.value = true
	}
	n.time = timing{given: true, uses: u, settings: set}
	if extract != nil {
		n.time.extract = extract
	}
	n.detail = append(n.detail, "time: "+set.Name)
	return s
}

// extractor returns the function that finds the time of a source's records.
func extractor[K, V any](n *node) func(*Context, K, V) (int64, bool, error) {
	f, _ := n.time.extract.(func(*Context, K, V) (int64, bool, error))
	return f
}

// settleTime finds out behind which sources somebody asks for the time.
func (t *Topology) settleTime() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := t.nodes[i]
		n.asked = n.timed
		for _, c := range n.out {
			n.asked, n.origins = n.asked || c.asked, n.origins || c.origins
		}
		if n.kind == kindSource && !n.time.given {
			set, err := watermark.New()
			if err != nil {
				panic(err) // the defaults are valid
			}
			n.time.settings = set
		}
	}
}

// clocks makes the clocks of a task's sources and the nodes of its operators, in topological order.
func (b *compiler) makeClocks() {
	b.clocks, b.times = map[*node]*processor.Clock{}, map[*node]*processor.Node{}
	for _, src := range b.sub.sources {
		if !src.asked {
			continue
		}
		topic, repartition := src.topicOf()
		switch {
		case repartition == "":
			b.clocks[src] = &processor.Clock{Name: topic, Settings: src.settings()}
		default:
			b.clocks[src] = &processor.Clock{Name: repartition, Writers: []uint32{watermark.WriterID(repartition)}}
		}
	}
	for _, n := range b.sub.nodes {
		if n.timed || n.cut && n.asked {
			marks, settings := b.marks(n)
			b.times[n] = processor.NewNode(b.op(n), marks, settings)
		}
	}
}

// settings returns how a source's records tell the time. Build has filled in the defaults.
func (n *node) settings() *watermark.Settings { return &n.time.settings }

// marks returns the watermarks that an operator's is the minimum of: those of the sources above it, or of operators that
// may hold theirs.
func (b *compiler) marks(n *node) (marks []*processor.Mark, settings []*watermark.Settings) {
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(m *node) {
		if seen[m] {
			return
		}
		seen[m] = true
		if k := b.clocks[m]; k != nil {
			marks = append(marks, k.Mark())
			if k.Settings != nil {
				settings = append(settings, k.Settings)
			} else {
				settings = append(settings, m.upstream(map[*node]bool{})...)
			}
			return
		}
		if m.holds {
			marks = append(marks, b.times[m].Mark())
			return
		}
		for _, in := range m.in {
			walk(in)
		}
	}
	for _, in := range n.in {
		walk(in)
	}
	return marks, settings
}

// upstream returns the settings of topics that the operators behind a repartition need: those that say what happens when
// all writers of it are idle. Writers whose watermark the clock moves are not.
func (n *node) upstream(seen map[*node]bool) (settings []*watermark.Settings) {
	for _, in := range n.in {
		if seen[in] {
			continue
		}
		seen[in] = true
		if in.kind == kindSource && in.time.settings.AllIdle == watermark.AdvanceToMax {
			settings = append(settings, in.settings())
		}
		settings = append(settings, in.upstream(seen)...)
	}
	return settings
}

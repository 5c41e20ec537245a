package topology

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// PreAggregate makes an aggregate right behind a KeyBy combine the records of each key, and of each slice of time if it
// has windows, before they go through the repartition topic: many records of a hot key become one. What is combined is
// sent at the commit, so lateness is judged as without it. It needs a folding that merges, and its counters count partial
// aggregates. Not for sessions, for input that retracts, nor with window.Origin.
func PreAggregate() Option {
	return option{"PreAggregate", func(s *options) { s.preAggregate = true }}
}

// preAggregation is how the two halves of a KeyBy work whose records are combined first.
type preAggregation struct {
	schema func() string
	write  func(b *compiler, key *node) any // func(*Context, []byte, V) error
	read   func(b *compiler, key *node) processor.Source
}

// combine makes the KeyBy before an aggregate combine its records.
func combine[K, V, A any](n, in *node, k *encoding[K], v *encoding[A], w *window.Config, fold func() folding[K, V, A]) {
	if in.kind != kindKeyBy {
		n.t.problems.node(n, "PreAggregate needs a KeyBy right before the aggregate")
		return
	}
	in.pre = &preAggregation{
		schema: func() string { return "partial " + v.schema() },
		write: func(b *compiler, key *node) any {
			vc, _ := v.get()
			add, flush0 := processor.NewPartials(b.b.Context(), processor.PartialConfig[K, V, A]{
				Op: b.op(key), Index: b.sub.sinkIndex(key), Window: w, Value: vc, Step: fold().step,
			})
			b.flushes = append(b.flushes, flush{key.seq, flush0})
			return add
		},
		read: func(b *compiler, key *node) processor.Source {
			kc, _ := k.get()
			vc, _ := v.get()
			next, _ := b.compiled(n).(processor.Func[K, A])
			return processor.NewSource(processor.SourceConfig[K, A]{
				Op: b.op(key), Key: kc, Value: vc, NeedKey: key.wants.key, NeedValue: true, Stream: next, Clock: b.clocks[key],
			})
		},
	}
	n.late = append(n.late, func(p *problems) {
		switch {
		case fold().merge == nil:
			p.node(n, "PreAggregate needs a folding with Merge")
		case len(in.out) != 1:
			p.node(n, "PreAggregate needs the KeyBy %q for itself", in.id)
		case in.retracting():
			p.node(n, "PreAggregate cannot combine retractions")
		case w != nil && w.Window.Kind() == window.KindSession:
			p.node(n, "PreAggregate cannot combine before sessions are known")
		case w != nil && w.ByOrigin():
			p.node(n, "PreAggregate mixes records of several origins")
		}
	})
}

// merging is a folding over partial aggregates.
func merging[K, V, A any](f folding[K, V, A]) folding[K, A, A] {
	return folding[K, A, A]{merge: f.merge, step: func(_ *Context, _ K, acc A, have bool, p A) (A, error) {
		if !have {
			return p, nil
		}
		return f.merge(acc, p), nil
	}}
}

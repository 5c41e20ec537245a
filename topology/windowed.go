package topology

import (
	"cmp"
	"reflect"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// Windowed is a stream whose records are about to be aggregated per key and window of event time.
type Windowed[K, V any] struct {
	s *Stream[K, V]
	c window.Config
}

// Window divides the stream into windows of event time, see package window for the kinds and for what the options mean.
// Without options a window gives one pane, when the watermark passes its end, and later records go to the late topic.
func (s *Stream[K, V]) Window(w window.Window, opts ...window.Option) *Windowed[K, V] {
	c, err := window.New(w, opts...)
	if err != nil {
		s.n.t.problems.add(s.n.seq, s.n.name(), err, "window")
	}
	return &Windowed[K, V]{s, c}
}

// Count counts the records of each key and window. Options: ValueCodec.
func (w *Windowed[K, V]) Count(id string, opts ...Option) *Panes[K, int64] {
	return windowed(w, kindCount, id, uses{}, func() folding[K, V, int64] {
		return folding[K, V, int64]{
			step:  func(_ *Context, _ K, n int64, _ bool, _ V) (int64, error) { return n + 1, nil },
			merge: func(a, b int64) int64 { return a + b },
			undo:  func(_ *Context, _ K, n int64, _ V) (int64, error) { return n - 1, nil },
		}
	}, opts)
}

// Sum adds up f of the records of each key and window. Integers wrap around. Options: ValueCodec.
func (w *Windowed[K, V]) Sum[N Number](id string, f func(V) N, opts ...Option) *Panes[K, N] {
	p := windowed(w, kindSum, id, uses{value: true}, func() folding[K, V, N] {
		return folding[K, V, N]{
			step:  func(_ *Context, _ K, acc N, _ bool, v V) (N, error) { return acc + f(v), nil },
			merge: func(a, b N) N { return a + b },
			undo:  func(_ *Context, _ K, acc N, v V) (N, error) { return acc - f(v), nil },
		}
	}, opts)
	p.n.require(f, "the function")
	return p
}

// Min keeps the smallest f of each key and window. Options: ValueCodec.
func (w *Windowed[K, V]) Min[N cmp.Ordered](id string, f func(V) N, opts ...Option) *Panes[K, N] {
	return pick(w, kindMin, id, f, func(a, b N) N { return min(a, b) }, opts)
}

// Max keeps the largest f of each key and window. Options: ValueCodec.
func (w *Windowed[K, V]) Max[N cmp.Ordered](id string, f func(V) N, opts ...Option) *Panes[K, N] {
	return pick(w, kindMax, id, f, func(a, b N) N { return max(a, b) }, opts)
}

func pick[K, V any, N cmp.Ordered](w *Windowed[K, V], kind, id string, f func(V) N, better func(a, b N) N, opts []Option) *Panes[K, N] {
	p := windowed(w, kind, id, uses{value: true}, func() folding[K, V, N] {
		return folding[K, V, N]{merge: better, step: func(_ *Context, _ K, acc N, have bool, v V) (N, error) {
			if !have {
				return f(v), nil
			}
			return better(acc, f(v)), nil
		}}
	}, opts)
	p.n.require(f, "the function")
	return p
}

// Reduce combines the values of each key and window: the first stands for itself, every later one goes through f, which
// also merges two results. Options: ValueCodec.
func (w *Windowed[K, V]) Reduce(id string, f func(acc, v V) V, opts ...Option) *Panes[K, V] {
	p := windowedAs(w, kindReduce, id, uses{value: true}, w.s.v, func() folding[K, V, V] {
		return folding[K, V, V]{merge: f, step: func(_ *Context, _ K, acc V, have bool, v V) (V, error) {
			if !have {
				return v, nil
			}
			return f(acc, v), nil
		}}
	}, opts)
	p.n.require(f, "the function")
	return p
}

// Aggregate folds the values of each key and window. Sessions need Folding.Merge; a stream of retractions needs
// Folding.Undo. Options: ValueCodec.
func (w *Windowed[K, V]) Aggregate[A any](id string, f Folding[A, V], opts ...Option) *Panes[K, A] {
	p := windowed(w, kindAggregate, id, uses{value: true}, func() folding[K, V, A] { return foldingOf[K](f) }, opts)
	p.n.require(f.given(), "the folding")
	return p
}

// TryAggregate is Aggregate with context, key and error, for windows that do not merge.
func (w *Windowed[K, V]) TryAggregate[A any](id string, f func(c *Context, k K, acc A, v V) (A, error), opts ...Option) *Panes[K, A] {
	p := windowed(w, kindAggregate, id, uses{key: true, value: true}, func() folding[K, V, A] {
		return folding[K, V, A]{step: func(c *Context, k K, acc A, _ bool, v V) (A, error) { return f(c, k, acc, v) }}
	}, opts)
	p.n.require(f, "the function")
	return p
}

func windowed[K, V, A any](w *Windowed[K, V], kind, id string, u uses, fold func() folding[K, V, A], opts []Option) *Panes[K, A] {
	return windowedAs(w, kind, id, u, encode[A](nil), fold, opts)
}

func windowedAs[K, V, A any](w *Windowed[K, V], kind, id string, u uses, v *encoding[A], fold func() folding[K, V, A], opts []Option) *Panes[K, A] {
	s := w.s
	n := s.n.t.add(&node{
		kind: kind, id: id, uses: u, stateful: true, timed: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[A](),
	}, s.n)
	n.t.claimID(n, id, kind)
	o := readOptions(n, opts, "ValueCodec", "PreAggregate", "StateVersion", "Migrate")
	v = override(n, o.value, v, "value")
	n.detail = append(n.detail, w.c.String())
	if o.preAggregate {
		combine(n, s.n, s.k, v, &w.c, fold)
	}
	n.origins, n.passesKey = w.c.ByOrigin(), w.c.ShowsRecords() // when the watermark moves, the key comes from the store
	n.retracts, n.sessions = w.c.Retracts(), w.c.Window.Kind() == window.KindSession
	kept, version := stored(n, o, v)
	blocks := ""
	if f := fold(); f.merge != nil && !f.inPlace && processor.CanSlice(&w.c) {
		blocks = id + "-blocks"
		declareSlices(n, id, blocks, s.k, kept, version, f.merge, w.c)
	} else {
		declareWindows(n, id, s.k, kept, w.c).versioned(version)
	}
	times := ""
	if w.c.Window.Kind() == window.KindSliding {
		times = id + "-times"
		declareTimes(n, times, s.k, kept, w.c).versioned(version)
	}
	if k := w.c.Window.Kind(); k == window.KindSession || k == window.KindSliding {
		n.checks = append(n.checks, func(p *problems) {
			if fold().merge == nil {
				p.node(n, "%s windows merge: the folding needs Merge", w.c.Window.Kind())
			}
		})
	}
	needsUndo(n, s.n, fold)
	n.compile = func(b *compiler) any {
		if o.preAggregate {
			return compileWindowed(b, n, s.k, kept, w.c, blocks, times, merging(fold()))
		}
		return compileWindowed(b, n, s.k, kept, w.c, blocks, times, fold())
	}
	return &Panes[K, A]{n, s.k, v}
}

func compileWindowed[K, V, A any](b *compiler, n *node, k *encoding[K], v *encoding[A], c window.Config, blocks, times string, f folding[K, V, A]) any {
	vc, err := v.get()
	if err != nil {
		b.fail(n.name(), err)
		return processor.Func[K, V](nil)
	}
	a := processor.WindowedConfig[K, V, A]{
		Op: b.op(n), Store: n.id, Blocks: blocks, Times: times, Node: b.times[n], Window: &c, Value: vc,
		Step: f.step, Merge: f.merge, Undo: f.undo,
		Next: panesOut[K, A](b, n),
	}
	if n.wants.key {
		a.Key, _ = k.get()
	}
	run, err := processor.NewWindowed(b.env.State, a)
	if err != nil {
		b.fail(n.name(), err)
		return processor.Func[K, V](nil)
	}
	return run
}

// Pane is one result of one window of one key.
type Pane[K, A any] = processor.Pane[K, A]

// Panes are the results of a windowed aggregate. A consumer may get several per window and key, see window.Pane.
type Panes[K, A any] struct {
	n *node
	k *encoding[K]
	v *encoding[A]
}

// panesOut returns what follows a windowed aggregate, nil for nothing.
func panesOut[K, A any](b *compiler, n *node) processor.PaneFunc[K, A] {
	var next []processor.PaneFunc[K, A]
	for _, c := range n.out {
		if f, ok := b.compiled(c).(processor.PaneFunc[K, A]); ok && f != nil {
			next = append(next, f)
		}
	}
	return processor.PaneFan(next)
}

// Map turns every pane into a record of the same key.
func (p *Panes[K, A]) Map[R any](f func(Pane[K, A]) R) *Stream[K, R] {
	s := mapPanes(p, func(_ *Context, q *Pane[K, A]) (R, error) { return f(*q), nil })
	s.n.require(f, "the function")
	return s
}

// TryMap is Map with context and error.
func (p *Panes[K, A]) TryMap[R any](f func(c *Context, p Pane[K, A]) (R, error)) *Stream[K, R] {
	s := mapPanes(p, func(c *Context, q *Pane[K, A]) (R, error) { return f(c, *q) })
	s.n.require(f, "the function")
	return s
}

func mapPanes[K, A, R any](p *Panes[K, A], f func(*Context, *Pane[K, A]) (R, error)) *Stream[K, R] {
	n := p.n.t.add(&node{
		kind: kindPaneMap, uses: uses{key: true, value: true}, passesKey: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[R](),
	}, p.n)
	n.compile = func(b *compiler) any { return processor.PaneMap(b.op(n), f, streamOut[K, R](b, n)) }
	return &Stream[K, R]{n, p.k, encode[R](nil)}
}

// Filter passes the panes that pred accepts.
func (p *Panes[K, A]) Filter(pred func(Pane[K, A]) bool) *Panes[K, A] {
	n := p.n.t.add(&node{
		kind: kindPaneFilter, uses: uses{key: true, value: true}, passesKey: true, passesVal: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[A](),
	}, p.n)
	n.require(pred, "the predicate")
	n.compile = func(b *compiler) any {
		return processor.PaneFilter(b.op(n), func(q *Pane[K, A]) bool { return pred(*q) }, panesOr(panesOut[K, A](b, n)))
	}
	return &Panes[K, A]{n, p.k, p.v}
}

// Peek shows every pane to f and passes it on.
func (p *Panes[K, A]) Peek(f func(Pane[K, A])) *Panes[K, A] {
	n := p.n.t.add(&node{
		kind: kindPanePeek, uses: uses{key: true, value: true}, passesKey: true, passesVal: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[A](),
	}, p.n)
	n.require(f, "the function")
	n.compile = func(b *compiler) any {
		return processor.PanePeek(b.op(n), func(q *Pane[K, A]) { f(*q) }, panesOr(panesOut[K, A](b, n)))
	}
	return &Panes[K, A]{n, p.k, p.v}
}

// panesOr returns f, or what does nothing if it is nil.
func panesOr[K, A any](f processor.PaneFunc[K, A]) processor.PaneFunc[K, A] {
	if f != nil {
		return f
	}
	return func(*Context, *Pane[K, A]) error { return nil }
}

// Values continues with the values of the panes alone.
func (p *Panes[K, A]) Values() *Stream[K, A] {
	s := mapPanes(p, func(_ *Context, q *Pane[K, A]) (A, error) { return q.Value, nil })
	s.v = p.v
	return s
}

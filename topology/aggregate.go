package topology

import (
	"cmp"
	"reflect"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
)

// Number is what Sum adds up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Count counts the records of each key. Keys and values are not decoded. Options: EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Count(id string, opts ...Option) *Table[K, int64] {
	return aggregate(s, kindCount, id, uses{}, func() folding[K, V, int64] {
		return folding[K, V, int64]{
			step:  func(_ *Context, _ K, n int64, _ bool, _ V) (int64, error) { return n + 1, nil },
			merge: func(a, b int64) int64 { return a + b },
			undo:  func(_ *Context, _ K, n int64, _ V) (int64, error) { return n - 1, nil },
		}
	}, opts)
}

// Sum adds up f of each record of a key. Integers wrap around. Options: EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Sum[N Number](id string, f func(V) N, opts ...Option) *Table[K, N] {
	return picked(s, kindSum, id, f, func(acc N, _ bool, n N) N { return acc + n }, func(acc, n N) N { return acc - n }, opts)
}

// Min keeps the smallest f of each key. Options: EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Min[N cmp.Ordered](id string, f func(V) N, opts ...Option) *Table[K, N] {
	return picked(s, kindMin, id, f, func(acc N, have bool, n N) N {
		if have {
			return min(acc, n)
		}
		return n
	}, nil, opts)
}

// Max keeps the largest f of each key. Options: EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Max[N cmp.Ordered](id string, f func(V) N, opts ...Option) *Table[K, N] {
	return picked(s, kindMax, id, f, func(acc N, have bool, n N) N {
		if have {
			return max(acc, n)
		}
		return n
	}, nil, opts)
}

// Reduce combines the values of each key: the first stands for itself, every later one goes through f. Options:
// EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Reduce(id string, f func(acc, v V) V, opts ...Option) *Table[K, V] {
	t := aggregateAs(s.n, s.k, kindReduce, id, uses{value: true}, s.v, func() folding[K, V, V] {
		return folding[K, V, V]{merge: f, step: func(_ *Context, _ K, acc V, have bool, v V) (V, error) {
			if !have {
				return v, nil
			}
			return f(acc, v), nil
		}}
	}, opts)
	t.n.require(f, "the function")
	return t
}

// Aggregate folds the values of each key. A result that stands for null (codec.Nullable) deletes the row; the next
// record starts from the zero A. Options: EveryUpdate, ValueCodec.
func (s *Stream[K, V]) Aggregate[A any](id string, f Folding[A, V], opts ...Option) *Table[K, A] {
	t := aggregate(s, kindAggregate, id, uses{value: true}, func() folding[K, V, A] { return foldingOf[K](f) }, opts)
	t.n.require(f.given(), "the folding")
	return t
}

// TryAggregate is Aggregate with context, key and error.
func (s *Stream[K, V]) TryAggregate[A any](id string, f func(c *Context, k K, acc A, v V) (A, error), opts ...Option) *Table[K, A] {
	t := aggregate(s, kindAggregate, id, uses{key: true, value: true}, func() folding[K, V, A] {
		return folding[K, V, A]{step: func(c *Context, k K, acc A, _ bool, v V) (A, error) { return f(c, k, acc, v) }}
	}, opts)
	t.n.require(f, "the function")
	return t
}

// picked is an aggregate over one number of each value.
func picked[K, V, N any](s *Stream[K, V], kind, id string, f func(V) N, merge func(acc N, have bool, n N) N, undo func(acc, n N) N, opts []Option) *Table[K, N] {
	t := aggregate(s, kind, id, uses{value: true}, func() folding[K, V, N] {
		r := folding[K, V, N]{
			step:  func(_ *Context, _ K, acc N, have bool, v V) (N, error) { return merge(acc, have, f(v)), nil },
			merge: func(a, b N) N { return merge(a, true, b) },
		}
		if undo != nil {
			r.undo = func(_ *Context, _ K, acc N, v V) (N, error) { return undo(acc, f(v)), nil }
		}
		return r
	}, opts)
	t.n.require(f, "the function")
	return t
}

// folding is how an aggregate works, made once per task.
type folding[K, V, A any] struct {
	step  processor.Step[K, V, A]
	merge func(a, b A) A                               // nil: it cannot merge
	undo  func(c *Context, k K, acc A, v V) (A, error) // nil: it cannot take a value back
	// inPlace: it changes what an aggregate points to, so that no two may share it.
	inPlace bool
}

func foldingOf[K, A, V any](f Folding[A, V]) folding[K, V, A] {
	r := folding[K, V, A]{step: step[K](f), merge: f.merge, inPlace: f.into != nil && shares(reflect.TypeFor[A]())}
	if f.undo != nil {
		r.undo = func(_ *Context, _ K, acc A, v V) (A, error) { return f.undo(acc, v), nil }
	}
	return r
}

// needsUndo reports an aggregate over a stream that takes results back, and cannot.
func needsUndo[K, V, A any](n, in *node, fold func() folding[K, V, A]) {
	n.late = append(n.late, func(p *problems) {
		if in.retracting() && fold().undo == nil {
			p.node(n, "its input retracts results: the folding needs Undo")
		}
	})
}

func aggregate[K, V, A any](s *Stream[K, V], kind, id string, u uses, fold func() folding[K, V, A], opts []Option) *Table[K, A] {
	return aggregateAs(s.n, s.k, kind, id, u, encode[A](nil), fold, opts)
}

// aggregateAs adds an aggregate. fold makes its running form, once per task.
func aggregateAs[K, V, A any](in *node, k *encoding[K], kind, id string, u uses, v *encoding[A], fold func() folding[K, V, A], opts []Option) *Table[K, A] {
	n := in.t.add(&node{
		kind: kind, id: id, uses: u, stateful: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[A](),
	}, in)
	n.t.claimID(n, id, kind)
	o := readOptions(n, opts, "EveryUpdate", "ValueCodec", "PreAggregate", "StateVersion", "Migrate")
	v = override(n, o.value, v, "value")
	if o.preAggregate {
		combine(n, in, k, v, nil, fold)
	}
	n.passesKey = o.everyUpdate // at a commit, the key comes from the store
	kept, version := stored(n, o, v)
	declare(n, id, k, kept).versioned(version)
	needsUndo(n, in, fold)
	n.compile = func(b *compiler) any {
		if o.preAggregate {
			return compileAggregate(b, n, k, kept, o, merging(fold()))
		}
		return compileAggregate(b, n, k, kept, o, fold())
	}
	return &Table[K, A]{n, k, v}
}

func compileAggregate[K, V, A any](b *compiler, n *node, k *encoding[K], v *encoding[A], o options, f folding[K, V, A]) any {
	a := processor.AggregateConfig[K, V, A]{
		Op: b.op(n), View: view(b, n.id, v), Step: f.step, Undo: f.undo,
		EveryUpdate: o.everyUpdate, NeedOld: n.wants.old,
		Next: tableOut[K, A](b, n),
	}
	vc, _ := v.get()
	a.Null, _ = vc.(codec.Nullable[A])
	if n.wants.key {
		a.Key, _ = k.get()
	}
	if b.err != nil {
		return processor.Func[K, V](nil)
	}
	run, held := processor.NewAggregate(b.b.Context(), a)
	if held != nil {
		b.flushes = append(b.flushes, flush{n.seq, held})
	}
	return run
}

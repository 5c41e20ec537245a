package topology

import "github.com/tidemark/tidemark/processor"

// Folding says how values are folded into an aggregate. The zero A is the empty aggregate.
type Folding[A, V any] struct {
	fold  func(A, V) A
	into  func(*A, V)
	merge func(A, A) A
	undo  func(A, V) A
}

// Fold folds by f: Fold(Metrics.Add) for a method func (m Metrics) Add(ad Ad) Metrics. A is immutable: f returns a new
// one. In particular it does not write to maps or slices of the old one.
func Fold[A, V any](f func(A, V) A) Folding[A, V] { return Folding[A, V]{fold: f} }

// FoldInto folds by changing the aggregate in place, for big ones: FoldInto((*Metrics).Add). f may change what A points
// to; nothing downstream may keep such parts of a result beyond its call. An f that panics or a record that fails
// downstream has changed the aggregate, which Effects of the task shows.
func FoldInto[A, V any](f func(*A, V)) Folding[A, V] { return Folding[A, V]{into: f} }

// Merge adds how two aggregates become one. Windows that merge and partial sums need it; plain aggregates do not.
func (f Folding[A, V]) Merge(merge func(A, A) A) Folding[A, V] {
	f.merge = merge
	return f
}

// Undo adds how a value is taken out again. Aggregates over tables need it; those over streams do not.
func (f Folding[A, V]) Undo(undo func(A, V) A) Folding[A, V] {
	f.undo = undo
	return f
}

// given returns the function that folds, nil if there is none.
func (f Folding[A, V]) given() any {
	if f.into != nil {
		return f.into
	}
	return f.fold
}

// step returns the folding as it runs in one task.
func step[K, A, V any](f Folding[A, V]) processor.Step[K, V, A] {
	if f.into == nil {
		return func(_ *Context, _ K, acc A, _ bool, v V) (A, error) { return f.fold(acc, v), nil }
	}
	scratch := new(A) // one per task, so that no record allocates
	return func(c *Context, _ K, acc A, _ bool, v V) (A, error) {
		c.Touch()
		*scratch = acc
		f.into(scratch, v)
		return *scratch, nil
	}
}

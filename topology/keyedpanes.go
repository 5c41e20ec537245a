package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// KeyedPanes are panes under another key, which an aggregate over them brings together: the hottest key of every window,
// for example.
type KeyedPanes[K2, K, A any] struct {
	n *node
	k *encoding[K2]
	v *encoding[Pane[K, A]]
}

// KeyBy gives panes another key. It is a cut, see Stream.KeyBy. Options: KeyCodec, ValueCodec (of a Pane), Partitions.
func (p *Panes[K, A]) KeyBy[K2 any](id string, f func(Pane[K, A]) K2, opts ...Option) *KeyedPanes[K2, K, A] {
	in := p.n.t.add(&node{
		kind: kindPaneMap, uses: uses{key: true, value: true}, passesKey: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[Pane[K, A]](),
	}, p.n)
	in.compile = func(b *compiler) any {
		return processor.PaneMap(b.op(in), func(_ *Context, q *Pane[K, A]) (Pane[K, A], error) { return *q, nil },
			streamOut[K, Pane[K, A]](b, in))
	}
	n, k, v := keyNode(in, p.k, encode[Pane[K, A]](nil), id, f, uses{value: true},
		func(_ *Context, _ K, q Pane[K, A]) (K2, error) { return f(q), nil }, opts)
	return &KeyedPanes[K2, K, A]{n, k, v}
}

// Aggregate folds the panes of each key. Panes that take a result back go through Folding.Undo, which is needed if the
// windows are retracting. Options: EveryUpdate, ValueCodec.
func (p *KeyedPanes[K2, K, A]) Aggregate[B any](id string, f Folding[B, Pane[K, A]], opts ...Option) *Table[K2, B] {
	t := aggregateAs(p.n, p.k, kindAggregate, id, uses{value: true}, encode[B](nil),
		func() folding[K2, Pane[K, A], B] { return foldingOf[K2](f) }, opts)
	t.n.require(f.given(), "the folding")
	return t
}

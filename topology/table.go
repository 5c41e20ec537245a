package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
)

// Table is a table: the latest value of each key. What flows through its operators are changes: a new value, or a
// delete.
type Table[K, V any] struct {
	n *node
	k *encoding[K]
	v *encoding[V]
}

// Change is one change of a row.
type Change[K, V any] struct {
	Key      K
	Old, New V
	Had, Has bool // whether the row was there before the change, and whether it is after: a delete has only Had
}

// Table reads a topic as a table and keeps it in a store. A null value deletes the key, a null key is an error. The last
// record to arrive wins, whatever its timestamp. Every change is passed on at once.
func (t *Topology) Table[K, V any](topic, store string, with ...Codecs[K, V]) *Table[K, V] {
	src, k, v := source(t, topic, with)
	return tableFrom(src, store, k, v)
}

// tableFrom adds the store of a table below the source of its topic.
func tableFrom[K, V any](src *node, store string, k *encoding[K], v *encoding[V]) *Table[K, V] {
	n := src.t.add(&node{
		kind: kindTable, id: store, uses: uses{value: true}, stateful: true, passesKey: true,
		keyType: reflect.TypeFor[K](), valueType: reflect.TypeFor[V](),
	}, src)
	n.t.claimID(n, store, n.kind)
	declare(n, store, k, v)
	n.compile = func(b *compiler) any {
		return processor.NewTableInput(b.op(n), view(b, store, v), tableOut[K, V](b, n))
	}
	return &Table[K, V]{n, k, v}
}

// onward adds an operator of a table that passes keys on.
func onward[K, V, R any](t *Table[K, V], n *node) *node {
	n.keyType, n.valueType, n.passesKey = reflect.TypeFor[K](), reflect.TypeFor[R](), true
	return t.n.t.add(n, t.n)
}

// tableNext returns what follows an operator of a table; there may be nothing.
func tableNext[K, V any](b *compiler, n *node) processor.TableFunc[K, V] {
	if next := tableOut[K, V](b, n); next != nil {
		return next
	}
	return func(*Context, K, *processor.Delta[V]) error { return nil }
}

// Filter keeps the rows pred accepts. A row that stops being accepted is deleted from the filtered table; changes of
// rows that are not in it, before and after, go no further. pred runs for old values, too.
func (t *Table[K, V]) Filter(pred func(V) bool) *Table[K, V] {
	r := t.filter(uses{}, func(_ *Context, _ K, v V) (bool, error) { return pred(v), nil })
	r.n.require(pred, "the predicate")
	return r
}

// TryFilter is Filter with context, key and error.
func (t *Table[K, V]) TryFilter(pred func(c *Context, k K, v V) (bool, error)) *Table[K, V] {
	r := t.filter(uses{key: true}, pred)
	r.n.require(pred, "the predicate")
	return r
}

func (t *Table[K, V]) filter(u uses, pred func(*Context, K, V) (bool, error)) *Table[K, V] {
	n := onward[K, V, V](t, &node{
		kind: kindFilter, uses: u.or(uses{value: true, old: true}), passesVal: true, passesOld: true,
	})
	n.compile = func(b *compiler) any { return processor.TableFilter(b.op(n), pred, tableNext[K, V](b, n)) }
	return &Table[K, V]{n, t.k, t.v}
}

// Map replaces the values. A result that stands for null (codec.Nullable) deletes the row. f runs for old values, too,
// if something downstream looks at them.
func (t *Table[K, V]) Map[R any](f func(V) R) *Table[K, R] {
	r := mapTable(t, uses{}, func(_ *Context, _ K, v V) (R, error) { return f(v), nil })
	r.n.require(f, "the function")
	return r
}

// TryMap is Map with context, key and error.
func (t *Table[K, V]) TryMap[R any](f func(c *Context, k K, v V) (R, error)) *Table[K, R] {
	r := mapTable(t, uses{key: true}, f)
	r.n.require(f, "the function")
	return r
}

func mapTable[K, V, R any](t *Table[K, V], u uses, f func(*Context, K, V) (R, error)) *Table[K, R] {
	n := onward[K, V, R](t, &node{kind: kindMap, uses: u.or(uses{value: true}), passesOld: true})
	v := retype[R](t.v)
	n.compile = func(b *compiler) any {
		return processor.TableMap(b.op(n), f, nullOf(v), n.wants.old, tableNext[K, R](b, n))
	}
	return &Table[K, R]{n, t.k, v}
}

// nullOf returns how a type's null is known, nil if it has none.
func nullOf[T any](e *encoding[T]) codec.Nullable[T] {
	c, err := e.get()
	if err != nil {
		return nil
	}
	null, _ := c.(codec.Nullable[T])
	return null
}

// ToStream continues with the new value of every change as a record. A delete is a record with the null of V if it has
// one, and otherwise no record: such deletes leave a table through Changes or To.
func (t *Table[K, V]) ToStream() *Stream[K, V] {
	n := onward[K, V, V](t, &node{kind: kindToStream, passesVal: true})
	n.compile = func(b *compiler) any { return processor.ToStream(nullOf(t.v), streamOut[K, V](b, n)) }
	return &Stream[K, V]{n, t.k, t.v}
}

// Changes continues with a record for every change f says true for. Under an aggregate without EveryUpdate a change is
// from commit to commit.
func (t *Table[K, V]) Changes[R any](f func(Change[K, V]) (R, bool)) *Stream[K, R] {
	s := changes(t, func(_ *Context, ch Change[K, V]) (R, bool, error) {
		r, ok := f(ch)
		return r, ok, nil
	})
	s.n.require(f, "the function")
	return s
}

// TryChanges is Changes with context and error.
func (t *Table[K, V]) TryChanges[R any](f func(c *Context, ch Change[K, V]) (R, bool, error)) *Stream[K, R] {
	s := changes(t, f)
	s.n.require(f, "the function")
	return s
}

func changes[K, V, R any](t *Table[K, V], f func(*Context, Change[K, V]) (R, bool, error)) *Stream[K, R] {
	n := onward[K, V, R](t, &node{kind: kindChanges, uses: uses{key: true, value: true, old: true}})
	n.compile = func(b *compiler) any {
		return processor.Changes(b.op(n), func(c *Context, k K, d *processor.Delta[V]) (R, bool, error) {
			return f(c, Change[K, V]{Key: k, Old: d.Old, New: d.New, Had: d.Had, Has: d.Has})
		}, streamOut[K, R](b, n))
	}
	return &Stream[K, R]{n, t.k, retype[R](t.v)}
}

// To writes every change to a topic: the new value, or a tombstone for a delete. Options: With, KeyCodec, ValueCodec.
func (t *Table[K, V]) To(topic string, opts ...Option) {
	sinkTo(t.n, topic, t.k, t.v, opts, true)
}

// Through writes every change to a topic and continues with the table read from it, kept in a store of its own.
func (t *Table[K, V]) Through(topic, store string, opts ...Option) *Table[K, V] {
	k, v := sinkTo(t.n, topic, t.k, t.v, opts, true)
	src, k, v := sourceOf(t.n.t, topic, k, v, 0)
	return tableFrom(src, store, k, v)
}

package store

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark/tidemark/codec"
)

// ListView is the typed form of a store with one list per key. A row of the key alone has the range of the indexes; the
// values are rows of their own, so adding one does not write the others again.
type ListView[V any] struct {
	v   *View[listRow[V]]
	buf []byte
}

// listRow is the range of a list, or one of its values.
type listRow[V any] struct {
	isRange     bool
	first, next uint64
	value       V
}

const (
	listRange = 0
	listValue = 1
)

// listCodec encodes listRange, first and next, 8 bytes big-endian each, or listValue and the value.
type listCodec[V any] struct{ codec.Codec[V] }

func (c listCodec[V]) Append(dst []byte, x listRow[V]) ([]byte, error) {
	if x.isRange {
		dst = binary.BigEndian.AppendUint64(append(dst, listRange), x.first)
		return binary.BigEndian.AppendUint64(dst, x.next), nil
	}
	return c.Codec.Append(append(dst, listValue), x.value)
}

func (c listCodec[V]) Decode(b []byte) (x listRow[V], err error) {
	switch {
	case len(b) == 17 && b[0] == listRange:
		return listRow[V]{isRange: true, first: binary.BigEndian.Uint64(b[1:]), next: binary.BigEndian.Uint64(b[9:])}, nil
	case len(b) > 0 && b[0] == listValue:
		x.value, err = c.Codec.Decode(b[1:])
		return x, err
	}
	return x, fmt.Errorf("%w: row of %d bytes", ErrCorrupt, len(b))
}

func (c listCodec[V]) Aliases() bool { return aliases(c.Codec) }

// ListViewOf returns the view of a store of kind List. It is the same view on every call for one State.
func ListViewOf[V any](s *State, store string, c codec.Codec[V]) (*ListView[V], error) {
	return wrapperOf(s, store, List, codec.Codec[listRow[V]](listCodec[V]{c}), func(v *View[listRow[V]]) (*ListView[V], error) {
		return &ListView[V]{v: v}, nil
	})
}

// head returns the row of the range of a list.
func (v *ListView[V]) head(key []byte) (*Row[listRow[V]], error) {
	v.buf = AppendTermKey(v.buf[:0], key)
	return v.v.Row(v.buf)
}

// at returns the key of a value of the list whose head was last asked for.
func (v *ListView[V]) at(key []byte, index uint64) []byte {
	v.buf = AppendListKey(v.buf[:0], key, index)
	return v.buf
}

// Append adds a value at the end. time is the timestamp of the changelog records in ms.
func (v *ListView[V]) Append(key []byte, val V, time int64) error {
	r, err := v.head(key)
	if err != nil {
		return err
	}
	x := r.Value
	x.isRange = true
	index := x.next
	x.next++
	v.v.Set(r, x, time)
	return v.v.Put(v.at(key, index), listRow[V]{value: val}, time)
}

// Len returns the number of values of key.
func (v *ListView[V]) Len(key []byte) (int, error) {
	r, err := v.head(key)
	if err != nil {
		return 0, err
	}
	return int(r.Value.next - r.Value.first), nil
}

// Values calls fn for the values of key in their order. fn must not change the list.
func (v *ListView[V]) Values(key []byte, fn func(val V, time int64) error) error {
	r, err := v.head(key)
	if err != nil {
		return err
	}
	for i, end := r.Value.first, r.Value.next; i < end; i++ {
		r, err := v.v.Row(v.at(key, i))
		if err != nil {
			return err
		}
		if !r.Present {
			return fmt.Errorf("store: %s: value %d of %q is missing: %w", v.v.id(), i, key, ErrCorrupt)
		}
		if err := fn(r.Value.value, r.Time); err != nil {
			return err
		}
	}
	return nil
}

// PopFront removes up to n values from the front.
func (v *ListView[V]) PopFront(key []byte, n int, time int64) error {
	r, err := v.head(key)
	if err != nil {
		return err
	}
	x := r.Value
	from := x.first
	x.first = min(x.next, x.first+uint64(max(n, 0)))
	switch {
	case from == x.first:
		return nil
	case x.first == x.next:
		v.v.Remove(r, time)
	default:
		v.v.Set(r, x, time)
	}
	for i := from; i < x.first; i++ {
		if err := v.v.Delete(v.at(key, i), time); err != nil {
			return err
		}
	}
	return nil
}

// Clear removes the list of key.
func (v *ListView[V]) Clear(key []byte, time int64) error {
	n, err := v.Len(key)
	if err != nil {
		return err
	}
	return v.PopFront(key, n, time)
}

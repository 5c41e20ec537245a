package store

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidemark/tidemark/codec"
)

// WindowView is the typed form of a store of windowed values: one row per window end and key. Rows lie in the order of
// their ends, so a window fires by one scan over its rows and expires by one step.
type WindowView[V any] struct {
	v    *View[V]
	buf  []byte
	ends []int64 // of windows that may hold rows, ascending
}

// WindowViewOf returns the view of a store of kind Window. It is the same view on every call for one State.
func WindowViewOf[V any](s *State, store string, c codec.Codec[V]) (*WindowView[V], error) {
	return wrapperOf(s, store, Window, c, func(v *View[V]) (*WindowView[V], error) {
		w := &WindowView[V]{v: v}
		v.groups.found = func(prefix uint64) { w.noteEnd(int64(prefix ^ 1<<63)) }
		_, err := lastPrefix(s.db, s.numbers[v.store], v.floor, 8, func(p []byte) { w.noteEnd(timeAt(p)) })
		if err != nil {
			return nil, fmt.Errorf("store: view of %s: %w", store, err)
		}
		for _, g := range append(slices.Clip(s.committedGens.list), s.sealed) {
			if g == nil {
				continue
			}
			for _, sp := range g.spans {
				if sp.store == v.store {
					v.groups.found(sp.prefix)
				}
			}
		}
		return w, nil
	})
}

func (w *WindowView[V]) noteEnd(end int64) {
	if n := len(w.ends); n == 0 || w.ends[n-1] < end {
		w.ends = append(w.ends, end)
	} else if i, ok := slices.BinarySearch(w.ends, end); !ok {
		w.ends = slices.Insert(w.ends, i, end)
	}
}

func (w *WindowView[V]) key(end int64, key []byte) []byte {
	w.buf = AppendWindowKey(w.buf[:0], end, key)
	return w.buf
}

// Row finds or loads the row of key in the window that ends at end, in ms. The pointer is valid until the next call on
// the view. The error is ErrExpired if the window has expired.
func (w *WindowView[V]) Row(end int64, key []byte) (*Row[V], error) { return w.v.Row(w.key(end, key)) }

// Get returns the value of key in that window and whether there is one. An expired window has none.
func (w *WindowView[V]) Get(end int64, key []byte) (V, bool, error) { return w.v.Get(w.key(end, key)) }

// Set changes a row that Row has just returned. time is the timestamp of the row in ms.
func (w *WindowView[V]) Set(r *Row[V], val V, time int64) { w.v.Set(r, val, time) }

// Remove removes a row that Row has just returned. Its changelog gets a tombstone, unless the window expires first.
func (w *WindowView[V]) Remove(r *Row[V], time int64) { w.v.Remove(r, time) }

// ScanEnd returns a cursor over the rows of one window in ascending order of their keys. Cursor.Key is the user's key.
// The rows of other windows cost nothing. As with View.Scan, a row written during the scan may show in either state.
func (w *WindowView[V]) ScanEnd(end int64) (*Cursor[V], error) {
	return w.v.scanGroup(uint64(end)^1<<63, nil)
}

// ScanEndFrom is ScanEnd from a key on.
func (w *WindowView[V]) ScanEndFrom(end int64, first []byte) (*Cursor[V], error) {
	return w.v.scanGroup(uint64(end)^1<<63, first)
}

// Ends appends the ends of windows that may hold rows, from <= end <= to, in ascending order. An end stays listed until
// it expires, even if its rows were removed or rolled back.
func (w *WindowView[V]) Ends(dst []int64, from, to int64) []int64 {
	// What has expired for good is not needed again.
	if f := w.v.s.committedFloors[w.v.store]; len(f) >= 8 {
		n, _ := slices.BinarySearch(w.ends, timeAt(f))
		w.ends = slices.Delete(w.ends, 0, n)
	}
	if f := w.v.floor; len(f) >= 8 {
		from = max(from, timeAt(f))
		if len(f) > 8 {
			return dst
		}
	}
	i, _ := slices.BinarySearch(w.ends, from)
	for ; i < len(w.ends) && w.ends[i] <= to; i++ {
		dst = append(dst, w.ends[i])
	}
	return dst
}

// NextEnd returns the first end after that one at which Ends lists a window.
func (w *WindowView[V]) NextEnd(after int64) (end int64, ok bool) {
	if after == math.MaxInt64 {
		return 0, false
	}
	from := after + 1
	if f := w.v.floor; len(f) > 8 {
		return 0, false
	} else if len(f) == 8 {
		from = max(from, timeAt(f))
	}
	i, _ := slices.BinarySearch(w.ends, from)
	if i == len(w.ends) {
		return 0, false
	}
	return w.ends[i], true
}

// Expire drops all windows with an end up to that one, from now on: nothing of them can be read or written. It takes
// constant time and writes nothing to the changelog; a smaller end than before does nothing. Rollback undoes it.
func (w *WindowView[V]) Expire(end int64) {
	floor := AppendTimeKey(nil, end)
	if end == math.MaxInt64 {
		floor = append(floor, slices.Repeat([]byte{0xff}, math.MaxUint8)...)
	} else {
		floor = AppendTimeKey(floor[:0], end+1)
	}
	w.v.s.Expire(w.v.store, floor)
}

// Drain is View.Drain: it visits the rows changed since the last Drain, those of expired windows left out.
func (w *WindowView[V]) Drain(fn func(end int64, key []byte, old V, hadOld bool, r *Row[V]) error) error {
	return w.v.Drain(func(key []byte, old V, hadOld bool, r *Row[V]) error {
		return fn(timeAt(key), key[8:], old, hadOld, r)
	})
}

// EnableOld makes Drain report the values before the change. Call it before the first write.
func (w *WindowView[V]) EnableOld() { w.v.EnableOld() }

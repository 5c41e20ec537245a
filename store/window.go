package store

import "github.com/tidemark/tidemark/codec"

// WindowView is the typed form of a store of windowed values: one row per window end and key. Rows lie in the order of
// their ends, so a window fires by one scan over its rows and expires by one step.
type WindowView[V any] struct{ v *View[V] }

// WindowViewOf returns the view of a store of kind Window. It is the same view on every call for one State.
func WindowViewOf[V any](s *State, store string, c codec.Codec[V]) (*WindowView[V], error) { panic("") }

// Row finds or loads the row of key in the window that ends at end, in ms. The pointer is valid until the next call on
// the view. The error is ErrExpired if the window has expired.
func (w *WindowView[V]) Row(end int64, key []byte) (*Row[V], error) { panic("") }

// Get returns the value of key in that window and whether there is one. An expired window has none.
func (w *WindowView[V]) Get(end int64, key []byte) (V, bool, error) { panic("") }

// Set changes a row that Row has just returned. time is the timestamp of the row in ms.
func (w *WindowView[V]) Set(r *Row[V], val V, time int64) { panic("") }

// Remove removes a row that Row has just returned. Its changelog gets a tombstone, unless the window expires first.
func (w *WindowView[V]) Remove(r *Row[V], time int64) { panic("") }

// ScanEnd returns a cursor over the rows of one window in ascending order of their keys. Cursor.Key is the user's key.
// The rows of other windows cost nothing.
func (w *WindowView[V]) ScanEnd(end int64) (*Cursor[V], error) { panic("") }

// Ends appends the ends of windows that may hold rows, from <= end <= to, in ascending order. An end stays listed until
// it expires, even if its rows were removed or rolled back.
func (w *WindowView[V]) Ends(dst []int64, from, to int64) []int64 { panic("") }

// Expire drops all windows with end <= end, from now on: nothing of them can be read or written. It takes constant time
// and writes nothing to the changelog; a smaller end than before does nothing. Rollback undoes it.
func (w *WindowView[V]) Expire(end int64) { panic("") }

// Drain is View.Drain: it visits the rows changed since the last Drain, those of expired windows left out.
func (w *WindowView[V]) Drain(fn func(end int64, key []byte, old V, hadOld bool, r *Row[V]) error) error {
	panic("")
}

// EnableOld makes Drain report the values before the change. Call it before the first write.
func (w *WindowView[V]) EnableOld() { panic("") }

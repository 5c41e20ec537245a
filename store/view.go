package store

import "github.com/tidemark/tidemark/codec"

// Row is one row of a View, present or not.
type Row[V any] struct {
	// Value, Present and Time are the row as the task sees it: read them freely, write them through View.Set and
	// View.Remove only. Value is immutable: a changed value is a new value. Time is in ms since 1970.
	Value   V
	Time    int64
	Present bool
}

// View is the typed form of one key-value store.
type View[V any] struct{}

// ViewOf returns the view of a store. It is the same view on every call for one State; V must be the same, too.
func ViewOf[V any](s *State, store string, c codec.Codec[V]) (*View[V], error) { panic("unfinished") }

// Row finds or loads the row of key. The pointer is valid until the next call on the view; calls on other views leave
// it valid.
func (v *View[V]) Row(key []byte) (*Row[V], error) { panic("unfinished") }

// Set changes a row that Row has just returned. A value that stands for null (codec.Nullable) removes it.
func (v *View[V]) Set(r *Row[V], val V, time int64) { panic("unfinished") }

// Remove removes a row that Row has just returned.
func (v *View[V]) Remove(r *Row[V], time int64) { panic("unfinished") }

// Get returns the value of key and whether there is one.
func (v *View[V]) Get(key []byte) (V, bool, error) { panic("unfinished") }

// Put sets the value of key. It reads nothing unless EnableOld was called.
func (v *View[V]) Put(key []byte, val V, time int64) error { panic("unfinished") }

// Delete removes the row of key. It reads nothing unless EnableOld was called.
func (v *View[V]) Delete(key []byte, time int64) error { panic("unfinished") }

// EnableOld makes Drain report the values before the change. Call it before the first write.
func (v *View[V]) EnableOld() { panic("unfinished") }

// Drain calls fn once for every row changed in the current generation since the last Drain, in the order of their
// first change. old is the value before that change, if EnableOld was called. fn may write to the view; rows it changes
// belong to the next Drain. An error ends Drain and comes back; the rest is lost to later Drains.
func (v *View[V]) Drain(fn func(key []byte, old V, hadOld bool, r *Row[V]) error) error {
	panic("unfinished")
}

// Scan returns a cursor over the present rows with lo <= key < hi in ascending order of their encoded keys; a nil hi
// means up to the last row. It sees all writes made before the call; of a row written during the scan it may show
// either state.
func (v *View[V]) Scan(lo, hi []byte) (*Cursor[V], error) { panic("unfinished") }

// Cursor visits rows in order. It must be closed before the generation is sealed or rolled back.
type Cursor[V any] struct{}

// Next moves to the next row and reports whether there is one.
func (c *Cursor[V]) Next() bool { panic("unfinished") }

// Key returns the encoded key, valid until the next call of Next or Close.
func (c *Cursor[V]) Key() []byte { panic("unfinished") }

// Value returns the decoded value; it stays valid.
func (c *Cursor[V]) Value() (V, error) { panic("unfinished") }

// Time returns the timestamp of the row, in ms since 1970.
func (c *Cursor[V]) Time() int64 { panic("unfinished") }

// Err returns the error that ended the scan, if one did.
func (c *Cursor[V]) Err() error { panic("unfinished") }

// Close ends the scan and returns its error.
func (c *Cursor[V]) Close() error { panic("unfinished") }

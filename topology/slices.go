package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// declareSlices adds the stores of a windowed aggregate that is kept by slices: its rows are those of Kafka Streams'
// windows of the size of a slice.
func declareSlices[K, A any](n *node, id, blocks string, k *encoding[K], v *encoding[A], c window.Config) {
	n.t.claimID(n, blocks, "store")
	w := c.Window
	d := declare(n, id, k, v)
	base := d.spec
	d.spec = func() store.Spec {
		s := base()
		// How slices are kept does not depend on what windows show, but how long they are does.
		s.Kind, s.ValueSchema = store.Window, s.ValueSchema+" in slices of "+w.String()
		width := w.SliceWidth()
		s.Layout = store.WindowLayout(func(end int64) int64 { return end - width }, func(start int64) int64 { return start + width }, false)
		return s
	}
	declareStore[K, A](n, blocks, idStore{}, func() store.Spec {
		s := base()
		s.ID, s.Kind, s.Changelog, s.Derived = blocks, store.Window, false, true
		s.ValueSchema += " in blocks of " + w.String()
		return s
	})
}

// shares reports whether copies of a value of type t have memory in common that could be changed.
func shares(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return shares(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if shares(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

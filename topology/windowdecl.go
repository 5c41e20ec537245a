package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// declareWindows adds the store of a windowed aggregate.
func declareWindows[K, A any](n *node, id string, k *encoding[K], v *encoding[A], c window.Config) *storeDecl {
	d := declare(n, id, k, v)
	d.describe = append(d.describe, func(s *StoreShape) { s.Window, s.Layout = panesShape(c), "windows" })
	w := c.Window
	d.asked = queryable{windows: c.String(), panes: true, startOf: func(end int64) int64 { return w.Of(end).Start }}
	base := d.spec
	d.spec = func() store.Spec {
		s := base()
		// Rows written for other windows are not readable as these.
		s.ValueSchema += " in " + c.StateString()
		if w.Kind() == window.KindSession {
			s.Kind, s.Layout = store.Session, store.SessionLayout(true)
		} else {
			s.Kind = store.Window
			startOf, endOf := d.asked.startOf, func(start int64) int64 { return w.StartingAt(start).End }
			if w.Kind() == window.KindCumulate {
				// Windows share their starts, and Kafka Streams has none of the kind: the end names them.
				startOf, endOf = func(end int64) int64 { return end }, func(start int64) int64 { return start }
			}
			s.Layout = store.WindowLayout(startOf, endOf, true)
		}
		return s
	}
	return d
}

// declareSlices adds the stores of a windowed aggregate that is kept by slices: its rows are those of Kafka Streams'
// windows of the size of a slice.
func declareSlices[K, A any](n *node, id, blocks string, k *encoding[K], v *encoding[A], kept *version, merge func(a, b A) A, c window.Config) {
	n.t.claimID(n, blocks, "store")
	w := c.Window
	d := declare(n, id, k, v)
	d.describe = append(d.describe, func(s *StoreShape) { s.Window, s.Layout = panesShape(c), "slices" })
	width := w.SliceWidth()
	startOf := func(end int64) int64 { return end - width }
	d.asked = queryable{windows: c.String(), startOf: func(end int64) int64 { return w.Of(end).Start }, sliced: slicedOf(w, v, merge)}
	base := d.spec
	d.spec = func() store.Spec {
		s := base()
		// How slices are kept does not depend on what windows show, but how long they are does.
		s.Kind, s.ValueSchema = store.Window, s.ValueSchema+" in slices of "+w.String()
		s.Layout = store.WindowLayout(startOf, func(start int64) int64 { return start + width }, false)
		return s
	}
	d.versioned(kept)
	b := declareStore[K, A](n, blocks, idStore{}, func() store.Spec {
		s := base()
		s.ID, s.Kind, s.Changelog, s.Derived = blocks, store.Window, false, true
		s.ValueSchema += " in blocks of " + w.String()
		return s
	})
	b.valueSchema = v.schema
	b.versioned(kept)
}

// declareTimes adds the store of the record times of an aggregate over sliding windows.
func declareTimes[K, A any](n *node, times string, k *encoding[K], v *encoding[A], c window.Config) *storeDecl {
	n.t.claimID(n, times, "store")
	d := declareStore[K, A](n, times, idStore{}, func() store.Spec {
		return store.Spec{
			ID: times, Kind: store.Session, KeySchema: k.schema(), ValueSchema: v.schema() + " at a time, for " + c.StateString(),
			Changelog: true, Layout: store.SessionLayout(true),
		}
	})
	d.valueSchema = v.schema
	d.describe = append(d.describe, func(s *StoreShape) { s.Window = panesShape(c) })
	return d
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

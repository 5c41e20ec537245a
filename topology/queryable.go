package topology

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// queryable is what readers from outside need to know of a store besides its spec.
type queryable struct {
	windows string                // of what windows
	startOf func(end int64) int64 // of kind Window
	panes   bool                  // values begin with the state of a pane
	sliced  *query.Sliced         // how windows are made of slices, nil if it keeps windows
}

// formats returns the encodings of a store without their types.
func (e storeEncodings[K, V]) formats() (key, value query.Format, ok bool) {
	k, kerr := e.k.get()
	v, verr := e.v.get()
	if kerr != nil || verr != nil {
		return nil, nil, false
	}
	return codec.Erase(k), codec.Erase(v), true
}

var queryKinds = map[store.Kind]query.Kind{
	store.KeyValue: query.KeyValue, store.Window: query.Window, store.Session: query.Session,
	store.Versioned: query.Versioned, store.List: query.List, store.Expiring: query.Expiring,
}

// queries describes the stores of a sub-topology that can be asked: those that nobody but their operator understands,
// timers, ids and what is derived from other stores, are left out.
func (s *subgraph) queries() []*query.Store {
	var topics []string
	for _, src := range s.sources {
		if topic, repartition := src.topicOf(); repartition == "" {
			topics = append(topics, topic)
		}
	}
	var out []*query.Store
	for i, d := range s.stores {
		e, ok := d.encodings.(interface {
			formats() (key, value query.Format, ok bool)
		})
		if !ok {
			continue
		}
		kind, ok := queryKinds[d.spec().Kind]
		if !ok {
			continue
		}
		k, v, ok := e.formats()
		if !ok {
			continue
		}
		out = append(out, &query.Store{
			ID: d.id, Kind: kind, Sub: s.id, Topics: topics, Windows: d.asked.windows, Slices: d.asked.sliced != nil, Sliced: d.asked.sliced,
			Key: k, Value: v, Index: i, Panes: d.asked.panes, StartOf: d.asked.startOf,
		})
	}
	return out
}

// slicedOf says how windows are made of slices.
func slicedOf[A any](w window.Window, v *encoding[A], merge func(a, b A) A) *query.Sliced {
	start := func(end int64) int64 { return w.Of(end).Start }
	s := &query.Sliced{
		Width: w.SliceWidth(),
		Cover: func(slice int64) int64 { return w.Cover(w.SliceOf(slice)).First },
		Done:  func(watermark int64) int64 { return w.SlicesDone(watermark) },
	}
	s.Hop = w.Cover(w.Slice(0)).Step
	s.First = func(from int64) int64 {
		c := w.Cover(w.Slice(from))
		switch {
		case start(c.Last) < from:
			return c.Last + s.Hop
		case w.Kind() == window.KindCumulate:
			return c.First
		}
		return c.Last
	}
	s.Merge = func(dst, a, b []byte) ([]byte, error) {
		c, err := v.get()
		if err != nil {
			return nil, err
		}
		x, err := c.Decode(a)
		if err != nil {
			return nil, err
		}
		y, err := c.Decode(b)
		if err != nil {
			return nil, err
		}
		return c.Append(dst, merge(x, y))
	}
	return s
}

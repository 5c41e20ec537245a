package topology

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
)

// queryable is what readers from outside need to know of a store besides its spec.
type queryable struct {
	windows string                // of what windows
	startOf func(end int64) int64 // of kind Window
	panes   bool                  // values begin with the state of a pane
	slices  bool
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
			ID: d.id, Kind: kind, Sub: s.id, Topics: topics, Windows: d.asked.windows, Slices: d.asked.slices,
			Key: k, Value: v, Index: i, Panes: d.asked.panes, StartOf: d.asked.startOf,
		})
	}
	return out
}

package topology_test

import (
	"testing"
	"time"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// What a database keeps of a value schema says how its rows are read: as the plan does that has the types.
func TestStoredValue(t *testing.T) {
	top := topology.New("stored")
	in := top.Stream[string, string]("in")
	in.Count("counts")
	for id, w := range map[string]window.Window{
		"tumbling": window.Tumbling(time.Minute), "hopping": window.Hopping(time.Minute, 10*time.Second), "day": window.Day(time.UTC),
		"session": window.Session(time.Minute),
	} {
		in.Window(w).Count(id)
		in.Window(w, window.Retracting()).Count(id + "-retracting")
	}
	custom := topology.Windows[string, int64]("custom", window.Day(time.UTC), time.Hour)
	in.Process("custom-owner", func(topology.Emitter[string, string], topology.Record[string, string]) error { return nil }, custom)
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	seen, panes := 0, 0
	for _, sub := range plan.Subs {
		asked := map[string]bool{}
		for _, q := range sub.Queries {
			asked[q.ID] = q.Panes
		}
		for _, spec := range sub.Stores {
			want, ok := asked[spec.ID]
			if !ok {
				continue
			}
			schema, got := topology.StoredValue(spec)
			if schema != "int64" || got != want {
				t.Errorf("%s %q: %q with panes %v, want int64 with panes %v", spec.ID, spec.ValueSchema, schema, got, want)
			}
			if seen++; got {
				panes++
			}
		}
	}
	if seen != 10 || panes == 0 || panes == seen {
		t.Errorf("%d stores, %d with panes", seen, panes)
	}
	if s, panes := topology.StoredValue(store.Spec{Kind: store.KeyValue, ValueSchema: "json:{a in b; accumulating:int}"}); panes || s != "json:{a in b; accumulating:int}" {
		t.Errorf("%q, %v", s, panes)
	}
}

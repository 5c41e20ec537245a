package topology

import (
	"strings"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// StoredValue reads the value schema of a store as a database keeps it. It returns the schema of the values alone, without
// what windows add to it, and whether each begins with the state of a pane, see store.PaneValue. It is for whoever looks at
// rows without the topology.
func StoredValue(s store.Spec) (schema string, panes bool) {
	schema, in, ok := strings.Cut(s.ValueSchema, " in ") // a calendar has another one behind it
	if !ok || s.Kind != store.Window && s.Kind != store.Session {
		return s.ValueSchema, false
	}
	for _, part := range strings.Split(in, "; ")[1:] {
		switch part {
		case window.ModeAccumulating.String(), window.ModeDiscarding.String(), window.ModeRetracting.String():
			panes = true
		}
	}
	return schema, panes
}

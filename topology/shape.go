package topology

import "slices"

// Shape is what of a topology its state and the meaning of its state depend on, as data: it is recorded beside the state,
// written as JSON by programs, and compared by Compare. Equal topologies have equal shapes.
type Shape struct {
	Topology string `json:"topology"`
	// Fingerprint is the state fingerprint of the plan.
	Fingerprint string          `json:"fingerprint"`
	Subs        []SubShape      `json:"subs"`      // sorted by id
	Operators   []OperatorShape `json:"operators"` // those with stores and repartition topics, sorted by id
}

// SubShape is a sub-topology.
type SubShape struct {
	ID        string   `json:"id"`
	Operators []string `json:"operators"`        // as Sub has them
	Topics    []string `json:"topics,omitempty"` // input topics that are not the app's own, sorted
}

// OperatorShape is an operator that has state: stores, or a repartition topic with records on their way.
type OperatorShape struct {
	ID          string            `json:"id"`
	Kind        string            `json:"kind"`
	Sub         string            `json:"sub"`               // where its function runs
	Sources     []string          `json:"sources,omitempty"` // where its records come from: "topic <name>", "repartition <id>", sorted
	Stores      []StoreShape      `json:"stores,omitempty"`  // in the order of declaration
	Repartition *RepartitionShape `json:"repartition,omitempty"`
	Tasks       int               `json:"tasks,omitzero"` // of Sub; 0: not known, see Shape.WithTasks
	// Retired says that the operator has left the topology and its state is still there. Compare misses nothing of it, and
	// refuses an operator under its id that could not read that state.
	Retired bool `json:"retired,omitzero"`
}

// RepartitionShape is a repartition topic.
type RepartitionShape struct {
	Key         string `json:"key"`                 // schema
	Value       string `json:"value"`               // schema
	Partitions  int    `json:"partitions,omitzero"` // as declared; 0: derived
	Partitioner string `json:"partitioner"`
}

// StoreShape is a store with a changelog.
type StoreShape struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // as store.Kind prints it
	Key  string `json:"key"`  // schema
	// Value is the schema of the values of the present version. Of ids that a Dedup remembers it is theirs, of timers it is
	// their domain.
	Value   string       `json:"value"`
	Version int          `json:"version,omitzero"` // see StateVersion
	Older   []OlderShape `json:"older,omitempty"`  // versions it can read as well, newest first
	// Form is the rest of what the rows depend on, as text. What the fields below say is in it, too.
	Form   string       `json:"form,omitempty"`
	Layout string       `json:"layout,omitempty"` // "windows" or "slices" of a windowed aggregate
	Window *WindowShape `json:"window,omitempty"`
	Dedup  *DedupShape  `json:"dedup,omitempty"`
	TTL    *TTLShape    `json:"ttl,omitempty"`
}

// OlderShape is a version of values that can be read by way of migrations.
type OlderShape struct {
	Version int    `json:"version"`
	Value   string `json:"value"` // schema
}

// WindowShape is a kind of window with what decides about its panes. Durations are in Go's notation.
type WindowShape struct {
	Kind      string `json:"kind"`
	Size      string `json:"size,omitempty"`
	Hop       string `json:"hop,omitempty"` // distance of starts, step of cumulating windows
	Gap       string `json:"gap,omitempty"`
	Offset    string `json:"offset,omitempty"`
	Zone      string `json:"zone,omitempty"`
	ZoneRules string `json:"zoneRules,omitempty"` // checksum, see window.Window.Rules
	Mode      string `json:"mode,omitempty"`      // accumulating, discarding or retracting; none where panes are a processor's business
	Lateness  string `json:"lateness,omitempty"`
	Triggers  string `json:"triggers,omitempty"`
}

// DedupShape is how a Dedup remembers ids.
type DedupShape struct {
	Horizon string `json:"horizon"`
	Bucket  string `json:"bucket"`
	AnyTime bool   `json:"anyTime,omitzero"`
	Salts   int    `json:"salts,omitzero"`
}

// TTLShape is how long rows are good.
type TTLShape struct {
	For   string `json:"for"`
	Clock string `json:"clock"` // "event time" or "processing time"
}

// partitioner is how keys find their partition. There is one way.
const partitioner = "murmur2"

// WithTasks returns the shape with the number of tasks of every operator filled in, given by sub-topology.
func (s Shape) WithTasks(tasks map[string]int) Shape {
	s.Operators = slices.Clone(s.Operators)
	for i := range s.Operators {
		s.Operators[i].Tasks = tasks[s.Operators[i].Sub]
	}
	return s
}

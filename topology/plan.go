package topology

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// Plan is a topology that has passed all checks: what the engine runs. It does not change and may be used by many
// goroutines.
type Plan struct {
	Name      string
	Subs      []*Sub     // in topological order: who writes a topic comes before who reads it, unless they do both
	Operators []Operator // in the order of declaration
	// StateFingerprint covers ids, stores, schemas, input topics and cuts: what old and new binaries must agree on to
	// share the work. BuildFingerprint covers all operators, their order, kinds and types. Function bodies and output
	// topics are in neither or only the latter.
	StateFingerprint, BuildFingerprint string

	nodes []*node
}

// Sub is one sub-topology: the part of a topology that runs in one kind of task.
type Sub struct {
	// ID is the smallest operator id of Operators, else the smallest topic it reads. The engine may keep an older id
	// that holds one of the operators.
	ID        string
	Operators []string // ids of its repartitions (read side) and stores, sorted
	Sources   []Source // by the source index of Task.Process
	Sinks     []Sink   // by the sink index of Output.Send
	Stores    []store.Spec
	// Queries describes those of the stores that can be asked. Partitions is left open.
	Queries []*query.Store
	// Timed says that an operator of the sub-topology asks for the time: the event time, which one behind its repartitions
	// may ask for as well, or the processing time.
	Timed bool
	// NewTask builds the running form for one partition. Env.State must have been opened with Stores. It may be called
	// from any goroutine.
	NewTask func(processor.Env) (*processor.Task, error)

	groups []group
}

// Source is a topic that a sub-topology reads.
type Source struct {
	Topic       string // empty for a repartition topic of the app
	Repartition string // operator id, if it is one
	// Time is how the records of a topic tell the event time; nil for a repartition, and if nobody asks for it.
	Time *watermark.Settings
}

// Sink is a topic that a sub-topology writes.
type Sink struct {
	Topic       string // empty for a repartition topic of the app
	Repartition string // operator id, if it is one
	Partitions  int    // of a repartition topic, as declared; 0: derived, see CheckPartitions
}

// Operator describes one operator of a plan.
type Operator struct {
	Name string // the id, or kind and number
	ID   string // empty for operators without one
	Kind string
	Sub  string // id of the sub-topology it runs in; for a KeyBy that cuts, where its function runs
	// StateFingerprint is empty for operators without state.
	StateFingerprint, BuildFingerprint string
}

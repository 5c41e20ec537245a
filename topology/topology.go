package topology

// Topology is being declared. It belongs to one goroutine until Build has returned, and must not be changed after.
type Topology struct {
	name     string
	problems problems
}

// New starts a topology. The name is for descriptions; topics and state are named after the app id and operator ids.
func New(name string) *Topology { return &Topology{name: name} }

// Build checks the topology and returns its plan, or every reason why there is none: *BuildError values, joined.
func (t *Topology) Build() (*Plan, error) {
	return &Plan{Name: t.name}, t.problems.join()
}

const (
	kindSource = "source"
	kindSink   = "sink"
)

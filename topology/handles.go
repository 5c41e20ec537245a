package topology

import (
	"fmt"

	"github.com/tidemark/tidemark/processor"
)

// Handle is what a custom processor may use: a store, a side output, or a promise. Handles are made once, when the
// topology is declared, listed in Process, and used while it runs.
type Handle interface {
	// attach lists the handle for a processor.
	attach(n *node)
}

// custom is what a processor node knows about its handles.
type custom struct {
	keyed, keeps bool
	key          any                                     // *encoding of the keys it gets
	timers       [2]bool                                 // by domain
	every        bool                                    // a period is listed
	methods      string                                  // what it lists that calls a method, "" for nothing
	slots        []func(b *compiler, s *processor.Scope) // fill the scope of a task
}

// slot is the place of a handle in the scopes of its topology's processors.
type slot struct {
	t     *Topology
	index int
}

// bind gives the handle its place. It reports a handle that already belongs to another topology.
func (s *slot) bind(n *node, what string) bool {
	switch s.t {
	case n.t:
	case nil:
		s.t, s.index = n.t, n.t.handles
		n.t.handles++
	default:
		n.t.problems.node(n, "%s belongs to another topology, %q", what, s.t.name)
		return false
	}
	return true
}

// in returns what the handle stands for where s runs. Using a handle that was not listed is a mistake in the program.
func in[T any](h *slot, s processor.Scoped, what, name string) T {
	v, ok := s.Scope().Slot(h.index).(T)
	if !ok || h.t == nil {
		panic(fmt.Sprintf("topology: %s %s is used by a processor that does not list it", what, name))
	}
	return v
}

package topology

import "sync"

// Topology is being declared. It belongs to one goroutine until Build has returned, and must not be changed after.
type Topology struct {
	name     string
	nodes    []*node
	sources  map[string]*node // by topic
	ids      map[string]claim // by folded id
	numbers  map[string]int   // of nodes without id, by kind
	stores   []*storeDecl
	handles  int // slots of store handles and side outputs
	problems problems
	built    bool

	once  sync.Once
	known int // problems as of the build
	plan  *Plan
	err   error
}

// New starts a topology. The name is for descriptions; topics and state are named after the app id and operator ids.
func New(name string) *Topology {
	return &Topology{
		name:    name,
		sources: map[string]*node{},
		ids:     map[string]claim{},
		numbers: map[string]int{},
	}
}

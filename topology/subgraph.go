package topology

import (
	"cmp"
	"slices"

	"github.com/tidemark/tidemark/store"
)

// subgraph is one sub-topology while it is being built, and what its tasks are compiled from.
type subgraph struct {
	id      string
	nodes   []*node // in the order of declaration; a KeyBy that cuts is in the one its function runs in
	sources []*node // source nodes and KeyBys that cut, in the order of declaration
	sinks   []*node // one per topic or repartition
	stores  []*storeDecl
	groups  []group
}

// topicOf names what a source or sink node, or a KeyBy that cuts, reads or writes.
func (n *node) topicOf() (topic, repartition string) {
	if n.kind == kindKeyBy {
		return "", n.id
	}
	return n.label, ""
}

// sinkIndex returns the position of a sink node's topic among the sinks.
func (s *subgraph) sinkIndex(n *node) int {
	return slices.IndexFunc(s.sinks, func(k *node) bool {
		a, b := k.topicOf()
		c, d := n.topicOf()
		return a == c && b == d
	})
}

// split divides the graph into sub-topologies: what hangs together without passing through a repartition topic or a
// topic of the user, or shares a store.
func (t *Topology) split() []*subgraph {
	// Each node has two halves, its input's and its output's, which are one unless it cuts.
	parent := make([]int, 2*len(t.nodes))
	for i := range parent {
		parent[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if parent[i] != i {
			parent[i] = find(parent[i])
		}
		return parent[i]
	}
	union := func(a, b int) { parent[find(a)] = find(b) }
	input := func(n *node) int { return 2 * (n.seq - 1) }
	output := func(n *node) int { return 2*(n.seq-1) + 1 }
	for _, n := range t.nodes {
		if !n.cut {
			union(input(n), output(n))
		}
		for _, c := range n.out {
			union(output(n), input(c))
		}
	}
	for _, d := range t.stores {
		for _, u := range d.users {
			union(input(d.owner), input(u))
		}
	}
	subs := map[int]*subgraph{}
	var list []*subgraph
	at := func(half int) *subgraph {
		root := find(half)
		if subs[root] == nil {
			subs[root] = &subgraph{}
			list = append(list, subs[root])
		}
		return subs[root]
	}
	for _, n := range t.nodes {
		n.sub, n.behind = at(input(n)), at(output(n))
		n.sub.nodes = append(n.sub.nodes, n)
		if n.kind == kindSource || n.cut {
			n.behind.sources = append(n.behind.sources, n)
		}
		if (n.kind == kindSink || n.cut) && n.sub.sinkIndex(n) < 0 {
			n.sub.sinks = append(n.sub.sinks, n)
		}
	}
	for _, d := range t.stores {
		d.owner.sub.stores = append(d.owner.sub.stores, d)
	}
	for _, s := range list {
		s.id = cmp.Or(s.smallest(), s.smallestTopic())
		s.groups = s.findGroups()
	}
	return list
}

// operators returns the ids that make up the sub-topology's identity: its repartitions and stores, sorted.
func (s *subgraph) operators() []string {
	ids := []string{}
	for _, src := range s.sources {
		if src.cut {
			ids = append(ids, src.id)
		}
	}
	for _, d := range s.stores {
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	return ids
}

func (s *subgraph) smallest() string {
	if ids := s.operators(); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

func (s *subgraph) smallestTopic() string {
	var topics []string
	for _, src := range s.sources {
		topics = append(topics, src.label)
	}
	slices.Sort(topics)
	if len(topics) == 0 {
		return ""
	}
	return topics[0]
}

// findGroups finds which sources meet below stateful operators. Operators that share a source or a store are one group.
func (s *subgraph) findGroups() []group {
	type open struct {
		operators map[string]bool
		sources   map[int]bool
		stores    map[*storeDecl]bool
	}
	var groups []*open
	for _, n := range s.nodes {
		if !n.stateful {
			continue
		}
		g := &open{map[string]bool{n.name(): true}, map[int]bool{}, map[*storeDecl]bool{}}
		for _, d := range n.stores {
			g.stores[d] = true
		}
		for _, i := range s.sourcesOf(n) {
			g.sources[i] = true
		}
		kept := groups[:0]
		for _, o := range groups {
			if !overlap(o.sources, g.sources) && !overlap(o.stores, g.stores) {
				kept = append(kept, o)
				continue
			}
			merge(g.operators, o.operators)
			merge(g.sources, o.sources)
			merge(g.stores, o.stores)
		}
		groups = append(kept, g)
	}
	var out []group
	for _, g := range groups {
		out = append(out, group{operators: keys(g.operators), sources: keys(g.sources)})
	}
	slices.SortFunc(out, func(a, b group) int { return slices.Compare(a.sources, b.sources) })
	return out
}

// sourcesOf returns the sources that n's records come from.
func (s *subgraph) sourcesOf(n *node) []int {
	var found []int
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(m *node) {
		if seen[m] {
			return
		}
		seen[m] = true
		if i := slices.Index(s.sources, m); i >= 0 && m != n {
			found = append(found, i)
			return
		}
		for _, in := range m.in {
			walk(in)
		}
	}
	walk(n)
	return found
}

func overlap[T comparable](a, b map[T]bool) bool {
	for k := range a {
		if b[k] {
			return true
		}
	}
	return false
}

func merge[T comparable](into, from map[T]bool) {
	for k := range from {
		into[k] = true
	}
}

func keys[T cmp.Ordered](m map[T]bool) []T {
	var list []T
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// specs returns the stores as the engine opens them.
func (s *subgraph) specs() []store.Spec {
	var specs []store.Spec
	for _, d := range s.stores {
		specs = append(specs, d.spec())
	}
	return specs
}

package topology

import (
	"slices"
	"strings"
)

// order sorts the sub-topologies so that who writes a topic comes before who reads it; between those that do not depend
// on each other the smaller id comes first. Two that write to each other without a record ever going round, as when a
// stream meets a re-keyed copy of itself, have no such order: there the smaller id comes first as well.
func order(subs []*subgraph) []*subgraph {
	slices.SortFunc(subs, func(a, b *subgraph) int { return strings.Compare(a.id, b.id) })
	waits := map[*subgraph]int{} // for so many writers
	readers := map[*subgraph][]*subgraph{}
	for _, s := range subs {
		for _, k := range s.sinks {
			for _, r := range subs {
				if r != s && r.reads(k) && !slices.Contains(readers[s], r) {
					readers[s] = append(readers[s], r)
					waits[r]++
				}
			}
		}
	}
	var sorted []*subgraph
	for len(sorted) < len(subs) {
		i := slices.IndexFunc(subs, func(s *subgraph) bool { return waits[s] == 0 && !slices.Contains(sorted, s) })
		if i < 0 {
			i = slices.IndexFunc(subs, func(s *subgraph) bool { return !slices.Contains(sorted, s) })
		}
		sorted = append(sorted, subs[i])
		for _, r := range readers[subs[i]] {
			waits[r]--
		}
	}
	return sorted
}

// reads reports whether the sub-topology reads what a sink node writes.
func (s *subgraph) reads(sink *node) bool {
	topic, repartition := sink.topicOf()
	return slices.ContainsFunc(s.sources, func(src *node) bool {
		a, b := src.topicOf()
		return a == topic && b == repartition
	})
}

// checkCycles reports topics whose records would come back to where they were made. Operators alone cannot form a
// circle, since each is declared after its inputs; a topic that is written and read can.
func (t *Topology) checkCycles(p *problems) {
	const (
		open = 1
		done = 2
	)
	state := map[*node]int{}
	var path []string // topics passed on the way
	var visit func(*node)
	next := func(n *node, topic string, c *node) {
		if topic != "" {
			path = append(path, topic)
			defer func() { path = path[:len(path)-1] }()
		}
		if state[c] == open {
			p.node(n, "the topology is a cycle: topic %s", strings.Join(path[slices.Index(path, topic):], " -> "))
			return
		}
		visit(c)
	}
	visit = func(n *node) {
		if state[n] != 0 {
			return
		}
		state[n] = open
		if src := t.sources[n.label]; n.kind == kindSink && src != nil {
			next(n, n.label, src)
		}
		for _, c := range n.out {
			next(n, "", c)
		}
		state[n] = done
	}
	for _, n := range t.nodes {
		if n.kind == kindSource {
			path = []string{n.label}
			visit(n)
		}
	}
}

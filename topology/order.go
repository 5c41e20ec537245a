package topology

import (
	"slices"
	"strings"
)

// order sorts the sub-topologies so that who writes a topic comes before who reads it; between those that do not depend
// on each other the smaller id comes first. Topics that lead in a circle are reported.
func (t *Topology) order(subs []*subgraph, p *problems) []*subgraph {
	slices.SortFunc(subs, func(a, b *subgraph) int { return strings.Compare(a.id, b.id) })
	waits := map[*subgraph]int{} // for so many writers
	for _, s := range subs {
		for _, k := range s.sinks {
			for _, r := range subs {
				if readsFrom(r, k) && !slices.Contains(s.writes, r) {
					s.writes = append(s.writes, r)
					waits[r]++
				}
			}
		}
	}
	var sorted []*subgraph
	for len(sorted) < len(subs) {
		i := slices.IndexFunc(subs, func(s *subgraph) bool { return waits[s] == 0 && !slices.Contains(sorted, s) })
		if i < 0 {
			reportCycle(subs, sorted, p)
			return subs
		}
		sorted = append(sorted, subs[i])
		for _, r := range subs[i].writes {
			waits[r]--
		}
	}
	return sorted
}

// readsFrom reports whether a sub-topology reads what a sink node writes.
func readsFrom(s *subgraph, sink *node) bool {
	topic, repartition := sink.topicOf()
	return slices.ContainsFunc(s.sources, func(src *node) bool {
		a, b := src.topicOf()
		return a == topic && b == repartition
	})
}

// reportCycle finds one circle among the sub-topologies that could not be sorted and names the topics along it.
func reportCycle(subs, sorted []*subgraph, p *problems) {
	i := slices.IndexFunc(subs, func(s *subgraph) bool { return !slices.Contains(sorted, s) })
	// Everything left has a writer that is left too: going from reader to writer must come back somewhere.
	var path []*subgraph
	at := subs[i]
	for !slices.Contains(path, at) {
		path = append(path, at)
		j := slices.IndexFunc(subs, func(s *subgraph) bool {
			return !slices.Contains(sorted, s) && slices.Contains(s.writes, at)
		})
		at = subs[j]
	}
	path = path[slices.Index(path, at):]
	slices.Reverse(path)
	var names []string
	var first *node
	for k, s := range path {
		next := path[(k+1)%len(path)]
		for _, sink := range s.sinks {
			if readsFrom(next, sink) {
				if first == nil || sink.seq > first.seq {
					first = sink
				}
				topic, repartition := sink.topicOf()
				if repartition != "" {
					topic = "repartition " + repartition
				}
				names = append(names, topic)
				break
			}
		}
	}
	p.node(first, "the topology is a cycle: %s leads back to itself", strings.Join(names, " -> "))
}

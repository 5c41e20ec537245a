package topology

import (
	"slices"

	"github.com/tidemark/tidemark/processor"
)

// Build checks the topology and returns its plan, or every reason why there is none: *BuildError values, joined. The
// topology must not be changed afterwards. Further calls, which any goroutine may make, return the same plan: several
// instances in one process share it.
func (t *Topology) Build() (*Plan, error) {
	t.once.Do(func() {
		t.built = true
		t.plan, t.err = t.build()
	})
	if len(t.problems) > t.known {
		return nil, t.problems.join() // it was changed
	}
	return t.plan, t.err
}

func (t *Topology) build() (*Plan, error) {
	p := slices.Clone(t.problems)
	t.known = len(p)
	if len(t.sources) == 0 {
		p.add(0, t.name, nil, "the topology reads no topic")
	}
	for _, n := range t.nodes {
		for _, check := range n.checks {
			check(&p)
		}
		if n.kind == kindSource && len(n.out) == 0 {
			p.node(n, "nothing reads the topic's records")
		}
	}
	for _, n := range t.nodes {
		for _, check := range n.late {
			check(&p)
		}
		n.late = nil // they add users to stores, once
	}
	t.cutAll(&p)
	subs := t.split()
	t.checkSubs(subs, &p)
	t.checkCycles(&p)
	subs = order(subs)
	if err := p.join(); err != nil {
		return nil, err
	}
	t.settleNeeds()
	t.settleTime()
	plan := &Plan{Name: t.name, nodes: t.nodes}
	for _, s := range subs {
		plan.Subs = append(plan.Subs, s.sub())
	}
	fingerprint(plan, subs)
	return plan, nil
}

// checkSubs reports sub-topologies that would share a name.
func (t *Topology) checkSubs(subs []*subgraph, p *problems) {
	byID := map[string]*subgraph{}
	for _, s := range subs {
		if len(s.sources) == 0 {
			if !t.brokenAt(s, *p) {
				p.node(s.nodes[0], "the sub-topology reads no topic")
			}
			continue
		}
		first := byID[fold(s.id)]
		if first == nil {
			byID[fold(s.id)] = s
			continue
		}
		a, b := first.named(), s.named()
		switch {
		case a.kind == kindSource && b.kind == kindSource:
			if a.label != b.label { // else it is one topic with two settings, which is reported as such
				p.node(b, "topics %q and %q name two sub-topologies, whose progress topics Kafka takes for the same", first.id, s.id)
			}
		case a.kind == kindSource, b.kind == kindSource:
			if a.kind == kindSource {
				a = b
			}
			p.node(a, "operator id %q names a sub-topology, and so does a topic: %s and %s would share a progress topic",
				a.id, first.id, s.id)
		}
	}
}

// named returns the node that gives the sub-topology its id.
func (s *subgraph) named() *node {
	for _, d := range s.stores {
		if d.id == s.id {
			return d.owner
		}
	}
	for _, src := range s.sources {
		if src.id == s.id || !src.cut && src.label == s.id {
			return src
		}
	}
	return s.sources[0]
}

// brokenAt reports whether a node of the sub-topology already has a problem that explains its missing source.
func (t *Topology) brokenAt(s *subgraph, p problems) bool {
	return slices.ContainsFunc(p, func(q problem) bool {
		return slices.ContainsFunc(s.nodes, func(n *node) bool { return n.seq == q.seq })
	})
}

// sub returns the plan's form of a sub-topology.
func (s *subgraph) sub() *Sub {
	out := &Sub{ID: s.id, Operators: s.operators(), Stores: s.specs(), Queries: s.queries(), groups: s.groups}
	for _, src := range s.sources {
		topic, repartition := src.topicOf()
		from := Source{Topic: topic, Repartition: repartition}
		if src.asked {
			out.Timed = true
			if repartition == "" {
				from.Time = src.settings()
			}
		}
		out.Sources = append(out.Sources, from)
	}
	for _, k := range s.sinks {
		out.Timed = out.Timed || k.cut && k.asked
		topic, repartition := k.topicOf()
		out.Sinks = append(out.Sinks, Sink{Topic: topic, Repartition: repartition, Partitions: k.partitions})
	}
	for _, n := range s.nodes {
		out.Timed = out.Timed || n.ticks
	}
	out.NewTask = func(env processor.Env) (*processor.Task, error) { return newTask(s, env) }
	return out
}

package topology

// cutAll decides which KeyBys write to a repartition topic: those on whose path an operator follows that needs its
// input partitioned by key. A path ends at the next KeyBy and at a topic.
func (t *Topology) cutAll(p *problems) {
	keyed := make([]bool, len(t.nodes)+1) // by seq: a stateful operator follows
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := t.nodes[i]
		for _, c := range n.out {
			keyed[n.seq] = keyed[n.seq] || c.stateful || c.kind != kindKeyBy && keyed[c.seq]
		}
		if n.kind != kindKeyBy {
			continue
		}
		if n.cut = keyed[n.seq]; n.cut {
			n.atCut(p)
		}
	}
	for _, n := range t.nodes {
		if n.stateful {
			n.checkKeys(p)
		}
	}
}

// checkKeys reports a processor between n and the topic its keys come from that may have changed them.
func (n *node) checkKeys(p *problems) {
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(m *node) {
		if seen[m] || m.kind == kindKeyBy {
			return
		}
		seen[m] = true
		if m.changesKey {
			p.node(n, "process %q may have changed the key: put a KeyBy between, or list KeepsKey there", m.id)
			return
		}
		for _, in := range m.in {
			walk(in)
		}
	}
	for _, in := range n.in {
		walk(in)
	}
}

// settleNeeds finds out which typed parts of a record each operator needs, from the ends of the graph up.
func (t *Topology) settleNeeds() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := t.nodes[i]
		n.wants = uses{}
		for _, c := range n.out {
			if c.kind != kindSide {
				n.wants = n.wants.or(c.needs)
			}
		}
		n.needs = n.uses.or(uses{
			key:   n.passesKey && n.wants.key,
			value: n.passesVal && n.wants.value,
			old:   n.passesOld && n.wants.old,
		})
	}
}

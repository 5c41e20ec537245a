package rebalance

// extras is step 3 of Plan: how many tasks of each sub-topology each member is to
// have. The even share is the same for all; what matters is who gets one more.
//
// It is an assignment problem: every sub-topology has a number of extra tasks, at most
// one per member; a member's extras cost the more the more tasks it has already, and a
// little less where it owns one too many anyway. The cheapest flow is therefore as even
// as can be, per sub-topology and in the sum, and among those moves the fewest tasks.
// Choosing greedily per sub-topology was tried on paper and is not stable: an even
// assignment would be changed into another even one.
func (p *planner) extras() [][]int {
	share := make([][]int, len(p.subs))
	base := make([]int, len(p.members)) // tasks a member has without extras
	units := 0
	for i := range p.subs {
		share[i] = make([]int, len(p.members))
		if len(p.able[i]) == 0 {
			p.counts[i] = 0
			continue
		}
		for _, m := range p.able[i] {
			share[i][m] = p.counts[i] / len(p.able[i])
			base[m] += share[i][m]
		}
		units += p.counts[i] % len(p.able[i])
	}
	if units == 0 {
		return share
	}
	owned := p.owned()
	f := newFlow(len(p.subs) + len(p.members) + 2)
	source, sink := len(p.subs)+len(p.members), len(p.subs)+len(p.members)+1
	weight := units + 1 // one task too many outweighs all that could stay
	type choice struct{ sub, member, edge int }
	var choices []choice
	wants := make([]int, len(p.members))
	for i := range p.subs {
		if len(p.able[i]) == 0 {
			continue
		}
		f.edge(source, i, p.counts[i]%len(p.able[i]), 0)
		for _, m := range p.able[i] {
			cost := 0
			if owned[i][m] > share[i][m] {
				cost = -1
			}
			choices = append(choices, choice{i, m, f.edge(i, len(p.subs)+m, 1, cost)})
			wants[m]++
		}
	}
	for m := range p.members {
		for k := range wants[m] {
			f.edge(len(p.subs)+m, sink, 1, weight*(base[m]+k))
		}
	}
	f.run(source, sink)
	for _, c := range choices {
		share[c.sub][c.member] += f.used(c.edge)
	}
	return share
}

// owned counts the tasks of each sub-topology each member owns.
func (p *planner) owned() [][]int {
	n := make([][]int, len(p.subs))
	for i := range p.subs {
		n[i] = make([]int, len(p.members))
		for _, o := range p.owner[i] {
			if o >= 0 {
				n[i][o]++
			}
		}
	}
	return n
}

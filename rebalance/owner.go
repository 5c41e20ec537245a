package rebalance

type partition struct {
	topic string
	n     int32
}

// claim is the newest claim on a partition.
type claim struct {
	generation int32
	member     int // or several
}

// own is step 2 of Plan: it finds the member that owns each task and the member whose
// claim stands in the way of giving the task to another.
//
// Only a claim of the generation before this one is ownership. A member that was
// thrown out and comes back under a new id still claims what it had, and somebody
// else may have owned and left it in between: such a task is withheld from everybody,
// its claimant included, so that it is taken over anew. So is a task that two members
// claim at one generation, or whose topics different members claim. A member that
// may not have the task at all can own it like any other: its share is nothing.
func (p *planner) own() {
	claims, current := p.claims()
	p.owner, p.block = make([][]int, len(p.subs)), make([][]int, len(p.subs))
	for i, s := range p.subs {
		p.owner[i], p.block[i] = make([]int, p.counts[i]), make([]int, p.counts[i])
		for n := range p.counts[i] {
			b := nobody
			for _, t := range s.Topics {
				c, ok := claims[partition{t, int32(n)}]
				switch {
				case !ok:
				case c.generation != current:
					b = several
				case b == nobody:
					b = c.member
				case b != c.member:
					b = several
				}
			}
			p.block[i][n], p.owner[i][n] = b, max(b, nobody)
		}
	}
}

// claims returns the newest claim on each partition and the generation that counts.
func (p *planner) claims() (claims map[partition]claim, current int32) {
	claims = make(map[partition]claim)
	current = p.in.Generation - 1
	for m, member := range p.members {
		if p.in.Generation <= 0 {
			current = max(current, member.Generation)
		}
		for topic, ps := range member.Claims {
			for _, n := range ps {
				key := partition{topic, n}
				c, ok := claims[key]
				switch {
				case !ok || member.Generation > c.generation:
					claims[key] = claim{member.Generation, m}
				case member.Generation == c.generation && c.member != m:
					claims[key] = claim{member.Generation, several}
				}
			}
		}
	}
	return claims, current
}

package rebalance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// group plays the cooperative protocol: every round the members send what they own,
// get a plan, revoke what is not in it, and join again if they revoked anything.
type group struct {
	t          *testing.T
	subs       []Sub
	partitions map[string]int32
	generation int32
	inForce    string
	members    map[string]*player
	next       int
}

type player struct {
	data       MemberData
	owned      map[TaskID]bool
	generation int32
}

func (g *group) join(fingerprint string) string {
	g.next++
	id := fmt.Sprintf("m%d", g.next)
	g.members[id] = &player{generation: -1, owned: map[TaskID]bool{}, data: MemberData{
		Instance: fmt.Sprintf("i%03d", g.next*37%101), StateFingerprint: fingerprint, Subs: g.subs,
	}}
	return id
}

func (g *group) topics(task TaskID) []string {
	for _, s := range g.subs {
		if s.ID == task.Sub {
			return s.Topics
		}
	}
	return nil
}

func (g *group) round() (again bool, moved int) {
	g.generation++
	in := Input{Generation: g.generation, StateFingerprint: g.inForce, Partitions: g.partitions}
	for id, p := range g.members {
		m := Member{ID: id, Data: p.data, Generation: p.generation, Claims: map[string][]int32{}}
		for task := range p.owned {
			for _, topic := range g.topics(task) {
				m.Claims[topic] = append(m.Claims[topic], task.Partition)
			}
		}
		in.Members = append(in.Members, m)
	}
	r := Plan(in)
	holder := map[TaskID]string{}
	for id, p := range g.members {
		for task := range p.owned {
			holder[task] = id
		}
	}
	for id, tasks := range r.Tasks {
		if len(tasks) > 0 && g.members[id].data.StateFingerprint != g.inForce {
			g.t.Fatalf("%s has another state than the one in force and gets %v", id, tasks)
		}
		for _, task := range tasks {
			if h, ok := holder[task]; ok && h != id {
				g.t.Fatalf("generation %d: %v is given to %s while %s owns it", g.generation, task, id, h)
			}
		}
	}
	for id, p := range g.members {
		now := map[TaskID]bool{}
		for _, task := range r.Tasks[id] {
			now[task] = true
			if !p.owned[task] {
				moved++
			}
		}
		for task := range p.owned {
			if !now[task] {
				again = true
			}
		}
		p.owned, p.generation = now, g.generation
	}
	if len(r.Withheld) > 0 && !again {
		g.t.Fatalf("generation %d: %v is withheld and nobody revokes anything", g.generation, r.Withheld)
	}
	return again, moved
}

func (g *group) settle(limit int) (rounds, moved int) {
	for again := true; again; rounds++ {
		if rounds == limit {
			g.t.Fatalf("not settled after %d rounds", limit)
		}
		var n int
		again, n = g.round()
		moved += n
	}
	return rounds, moved
}

// settled checks what must hold when no rebalance is under way.
func (g *group) settled() {
	var able []*player
	for _, p := range g.members {
		if p.data.StateFingerprint == g.inForce {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return
	}
	owners := map[TaskID]int{}
	for _, p := range able {
		for task := range p.owned {
			owners[task]++
		}
	}
	sums := make([]int, len(able))
	for _, s := range g.subs {
		n := int32(0)
		for _, topic := range s.Topics {
			n = max(n, g.partitions[topic])
		}
		for p := range n {
			if owners[TaskID{s.ID, p}] != 1 {
				g.t.Fatalf("%s/%d has %d owners", s.ID, p, owners[TaskID{s.ID, p}])
			}
		}
		var counts []int
		for i, p := range able {
			c := 0
			for task := range p.owned {
				if task.Sub == s.ID {
					c++
				}
			}
			counts = append(counts, c)
			sums[i] += c
		}
		if slices.Max(counts)-slices.Min(counts) > 1 {
			g.t.Fatalf("tasks of %s are spread %v", s.ID, counts)
		}
	}
	if slices.Max(sums)-slices.Min(sums) > 1 {
		g.t.Fatalf("tasks are spread %v", sums)
	}
}

// B-FOLLOWUP-LOOP (the plan's part): a bounded number of rounds for every event, each
// task owned once, and nothing moves without need.
func TestRoundsAreBounded(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		g := &group{t: t, inForce: "f", members: map[string]*player{}, partitions: map[string]int32{}}
		for s := range 1 + rnd.IntN(5) {
			topics := []string{fmt.Sprintf("t%d", s)}
			if rnd.IntN(2) == 0 {
				topics = append(topics, fmt.Sprintf("u%d", s))
			}
			n := int32(1 + rnd.IntN(12))
			for _, topic := range topics {
				g.partitions[topic] = n
			}
			g.subs = append(g.subs, Sub{fmt.Sprintf("s%d", s), topics})
		}
		for range 25 {
			ids := slices.Sorted(maps.Keys(g.members))
			switch op := rnd.IntN(10); {
			case op < 4 || len(ids) == 0:
				g.join([]string{"f", "f", "f", "g"}[rnd.IntN(4)])
			case op < 6:
				delete(g.members, ids[rnd.IntN(len(ids))])
			case op < 7: // several at once
				g.join("f")
				g.join("f")
				delete(g.members, ids[rnd.IntN(len(ids))])
			case op < 8: // thrown out, comes back under another id with its old claims
				p := g.members[ids[rnd.IntN(len(ids))]]
				p.generation -= int32(1 + rnd.IntN(2))
			case op < 9: // a topic grows
				topics := slices.Sorted(maps.Keys(g.partitions))
				g.partitions[topics[rnd.IntN(len(topics))]]++
			default: // switch of the state in force
				g.inForce = []string{"f", "g"}[rnd.IntN(2)]
			}
			g.settle(3)
			g.settled()
			if rounds, moved := g.settle(1); rounds != 1 || moved != 0 {
				t.Fatalf("a rebalance without cause moved %d tasks", moved)
			}
		}
	}
}

// A newcomer costs no more moves than the tasks it gets, when all subs are alike.
func TestJoinMovesOnlyWhatTheNewcomerGets(t *testing.T) {
	for _, partitions := range []int32{1, 5, 12, 100} {
		g := &group{t: t, inForce: "f", members: map[string]*player{}, partitions: map[string]int32{"t": partitions}, subs: oneSub}
		for range 8 {
			id := g.join("f")
			rounds, moved := g.settle(2)
			g.settled()
			if got := len(g.members[id].owned); moved != got {
				t.Errorf("%d partitions, %d members: %d tasks moved in %d rounds, the newcomer has %d", partitions, len(g.members), moved, rounds, got)
			}
		}
	}
}

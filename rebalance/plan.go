package rebalance

import (
	"cmp"
	"slices"
	"strings"
)

// Member is a member of the group as the leader sees it in one round.
type Member struct {
	ID   string // the coordinator's member id
	Data MemberData
	// Claims are the partitions the member says it owns, by topic.
	Claims map[string][]int32
	// Generation is the last one the member was part of; claims of an older one are
	// overruled by those of a newer. -1 when it has none.
	Generation int32
	// Unreadable: the member's data have a format this build does not understand; only
	// the range of versions in Data is known.
	Unreadable bool
}

// Input is everything a plan depends on.
type Input struct {
	Members []Member
	// Partitions is the partition count of every topic the members read; a topic that
	// is missing has none yet.
	Partitions map[string]int32
	// StateFingerprint is the one in force; members with another one wait.
	StateFingerprint string
	// Format is the user data version in force; members that do not understand it wait.
	// 0: the highest that all members understand.
	Format int
	// Generation is that of the group being balanced.
	Generation int32
}

// Move is a task that changes its member; it is withheld from To until every
// claim of another member is gone.
type Move struct {
	Task     TaskID
	From, To string // member ids; From is empty when several claim it
}

// Result is a plan for one round.
type Result struct {
	Format           int
	Generation       int32
	StateFingerprint string
	// Members is the input's, sorted by instance, then member id.
	Members []Member
	// Tasks per member id, sorted. Every member has an entry.
	Tasks map[string][]TaskID
	// Subs are the sub-topologies of the members in force, sorted by id.
	Subs []Sub
	// Counts is the number of tasks per sub-topology id.
	Counts map[string]int32
	// Withheld are the moves that wait for a revocation, sorted by task. While there
	// are any, another round follows.
	Withheld []Move
	// Waiting are the members that get nothing, by member id.
	Waiting map[string]Reason
	// NobodyInForce: no member has the fingerprint in force. All get nothing, and it is
	// the leader's turn to check compatibility and to switch.
	NobodyInForce bool
}

// Plan assigns tasks to members, in this order:
//
//  1. Members that do not understand the format in force, or have another state
//     fingerprint than the one in force, wait. With nobody left, nothing is assigned.
//  2. Who owns what follows from the claims: the newest generation counts, and of two
//     claims at one generation neither.
//  3. Every sub-topology is spread evenly, and so is the sum; which member gets one more
//     of a sub-topology is chosen so that as many tasks as possible stay (see extras).
//  4. A member keeps what it owns up to its share; the rest goes to those below theirs.
//  5. A task that somebody else still claims is withheld: the owner revokes it when it
//     sees the plan, joins again, and the next round gives it away.
//
// All topics of a sub-topology move together. The plan is deterministic: equal inputs,
// in whatever order of members, give equal results.
func Plan(in Input) Result {
	p := newPlanner(in)
	p.judge()
	p.collect()
	if !p.out.NobodyInForce {
		p.own()
		p.assign(p.extras())
	}
	for id := range p.out.Tasks {
		slices.SortFunc(p.out.Tasks[id], TaskID.Compare)
	}
	slices.SortFunc(p.out.Withheld, func(a, b Move) int { return a.Task.Compare(b.Task) })
	return p.out
}

// planner is the state of one Plan. Members and subs are indexes from here on.
type planner struct {
	in      Input
	members []Member
	subs    []Sub
	counts  []int   // tasks by sub
	able    [][]int // members that may run a sub, by sub
	owner   [][]int // by sub and partition: the member that owns it, -1
	block   [][]int // by sub and partition: the member whose claim counts, -1 none, several
	out     Result
}

const (
	nobody  = -1
	several = -2
)

func newPlanner(in Input) *planner {
	p := &planner{in: in, members: slices.Clone(in.Members)}
	slices.SortFunc(p.members, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Data.Instance, b.Data.Instance), strings.Compare(a.ID, b.ID))
	})
	p.out = Result{
		Generation: in.Generation, StateFingerprint: in.StateFingerprint, Members: p.members,
		Tasks: make(map[string][]TaskID), Waiting: make(map[string]Reason), Counts: make(map[string]int32),
	}
	for _, m := range p.members {
		p.out.Tasks[m.ID] = nil
	}
	return p
}

// judge is step 1.
func (p *planner) judge() {
	format := p.in.Format
	if format == 0 {
		format = FormatMax
		for _, m := range p.members {
			if hi := m.Data.FormatMax; hi != 0 {
				format = min(format, hi)
			}
		}
		format = max(format, FormatMin)
	}
	p.out.Format = format
	inForce := false
	for _, m := range p.members {
		lo, hi := m.Data.FormatMin, m.Data.FormatMax
		if lo == 0 && hi == 0 {
			lo, hi = FormatMin, FormatMax
		}
		switch {
		case m.Unreadable || format < lo || format > hi:
			p.out.Waiting[m.ID] = NoCommonFormat
		case m.Data.StateFingerprint != p.in.StateFingerprint:
			p.out.Waiting[m.ID] = OtherState
		default:
			inForce = true
		}
	}
	if inForce {
		return
	}
	p.out.NobodyInForce = true
	for id, r := range p.out.Waiting {
		if r == OtherState {
			p.out.Waiting[id] = NoState
		}
	}
}

func (p *planner) waits(m int) bool {
	_, ok := p.out.Waiting[p.members[m].ID]
	return ok
}

// collect gathers the sub-topologies of the members in force and who can run them.
// Equal fingerprints mean equal sub-topologies; a member that differs all the same does
// not get those in which it differs from the first.
func (p *planner) collect() {
	for m := range p.members {
		if p.waits(m) {
			continue
		}
		for _, s := range p.members[m].Data.Subs {
			if !slices.ContainsFunc(p.subs, func(o Sub) bool { return o.ID == s.ID }) {
				p.subs = append(p.subs, s)
			}
		}
	}
	slices.SortFunc(p.subs, func(a, b Sub) int { return strings.Compare(a.ID, b.ID) })
	p.out.Subs = p.subs
	p.counts, p.able = make([]int, len(p.subs)), make([][]int, len(p.subs))
	for i, s := range p.subs {
		for _, t := range s.Topics {
			p.counts[i] = max(p.counts[i], int(p.in.Partitions[t]))
		}
		p.out.Counts[s.ID] = int32(p.counts[i])
		for m := range p.members {
			if !p.waits(m) && slices.ContainsFunc(p.members[m].Data.Subs, func(o Sub) bool {
				return o.ID == s.ID && slices.Equal(o.Topics, s.Topics)
			}) {
				p.able[i] = append(p.able[i], m)
			}
		}
	}
}

// assign is steps 4 and 5. share holds by sub and member how many tasks it is to have.
func (p *planner) assign(share [][]int) {
	for i, s := range p.subs {
		kept := make([]int, len(p.members))
		target := make([]int, p.counts[i])
		var rest []int
		for n := range target {
			if o := p.owner[i][n]; o >= 0 && kept[o] < share[i][o] {
				kept[o]++
				target[n] = o
			} else {
				rest = append(rest, n)
			}
		}
		at := 0
		for _, n := range rest {
			for at < len(p.able[i]) && kept[p.able[i][at]] >= share[i][p.able[i][at]] {
				at++
			}
			m := p.able[i][at] // the shares add up to the tasks
			kept[m]++
			target[n] = m
		}
		for n, m := range target {
			task := TaskID{s.ID, int32(n)}
			id := p.members[m].ID
			switch b := p.block[i][n]; b {
			case nobody, m:
				p.out.Tasks[id] = append(p.out.Tasks[id], task)
			case several:
				p.out.Withheld = append(p.out.Withheld, Move{Task: task, To: id})
			default:
				p.out.Withheld = append(p.out.Withheld, Move{Task: task, From: p.members[b].ID, To: id})
			}
		}
	}
}

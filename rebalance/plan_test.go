package rebalance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// input builds the members of a group from lines "id fingerprint generation: topic/partition ...".
func input(generation int32, subs []Sub, partitions map[string]int32, lines ...string) Input {
	in := Input{Generation: generation, StateFingerprint: "f", Partitions: partitions}
	for _, line := range lines {
		head, claims, _ := strings.Cut(line, ":")
		m := Member{Claims: map[string][]int32{}}
		fmt.Sscan(head, &m.ID, &m.Data.StateFingerprint, &m.Generation)
		m.Data.Instance = "i-" + m.ID
		m.Data.Subs = subs
		for _, c := range strings.Fields(claims) {
			topic, n, _ := strings.Cut(c, "/")
			var p int32
			fmt.Sscan(n, &p)
			m.Claims[topic] = append(m.Claims[topic], p)
		}
		in.Members = append(in.Members, m)
	}
	return in
}

// show prints a result in the order of the members, withheld moves behind it.
func show(r Result) string {
	var b strings.Builder
	for _, m := range r.Members {
		fmt.Fprintf(&b, "%s %v", m.ID, r.Tasks[m.ID])
		if reason, ok := r.Waiting[m.ID]; ok {
			fmt.Fprintf(&b, " waits: %v", reason)
		}
		b.WriteByte('\n')
	}
	for _, w := range r.Withheld {
		fmt.Fprintf(&b, "%v %q -> %q\n", w.Task, w.From, w.To)
	}
	return b.String()
}

func check(t *testing.T, in Input, want string) Result {
	t.Helper()
	r := Plan(in)
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	if got := show(r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	return r
}

var oneSub = []Sub{{"s", []string{"t"}}}

// B-EVEN
func TestPlanSpreadsEveryKindOfTask(t *testing.T) {
	subs := []Sub{{"0", []string{"a"}}, {"1", []string{"b"}}}
	in := input(1, subs, map[string]int32{"a": 6, "b": 6}, "A f -1", "B f -1", "C f -1")
	r := Plan(in)
	for id, tasks := range r.Tasks {
		kinds := map[string]int{}
		for _, task := range tasks {
			kinds[task.Sub]++
		}
		if kinds["0"] != 2 || kinds["1"] != 2 {
			t.Errorf("%s has %v", id, tasks)
		}
	}
}

// Extra tasks of several sub-topologies may not all go to the same member.
func TestPlanSpreadsTheSumToo(t *testing.T) {
	subs := []Sub{{"0", []string{"a"}}, {"1", []string{"b"}}, {"2", []string{"c"}}, {"3", []string{"d"}}}
	check(t, input(1, subs, map[string]int32{"a": 1, "b": 1, "c": 1, "d": 1}, "A f -1", "B f -1"), `
		A [0/0 2/0]
		B [1/0 3/0]
	`)
}

// B-STALE-CLAIM
func TestPlanOverrulesStaleClaims(t *testing.T) {
	parts := map[string]int32{"t": 4}
	t.Run("the newer claim owns, and a move takes two rounds", func(t *testing.T) {
		check(t, input(7, oneSub, parts, "M1 f 5: t/0", "M2 f 6: t/0 t/1 t/2 t/3"), `
			M1 []
			M2 [s/0 s/1]
			s/2 "M2" -> "M1"
			s/3 "M2" -> "M1"
		`)
	})
	t.Run("a stale claim alone owns nothing and is revoked first", func(t *testing.T) {
		check(t, input(8, oneSub, parts, "M1 f 5: t/0 t/1 t/2", "M2 f 7: t/3"), `
			M1 []
			M2 [s/3]
			s/0 "" -> "M1"
			s/1 "" -> "M1"
			s/2 "" -> "M2"
		`)
	})
	t.Run("two claims at one generation count for nobody", func(t *testing.T) {
		check(t, input(7, oneSub, parts, "M1 f 6: t/0 t/1", "M2 f 6: t/0 t/2 t/3"), `
			M1 [s/1]
			M2 [s/2 s/3]
			s/0 "" -> "M1"
		`)
	})
}

func TestPlanMovesAllTopicsOfASubTopologyTogether(t *testing.T) {
	subs := []Sub{{"join", []string{"l", "r"}}}
	parts := map[string]int32{"l": 2, "r": 2}
	// r/0 is claimed by another member than l/0: the task is in two hands and taken from both.
	r := check(t, input(3, subs, parts, "A f 2: l/0 l/1 r/1", "B f 2: r/0"), `
		A [join/1]
		B []
		join/0 "" -> "B"
	`)
	if got := r.partitions(parts, r.Tasks["A"]); !cmp.Equal(got, map[string][]int32{"l": {1}, "r": {1}}) {
		t.Errorf("partitions of A: %v", got)
	}
	// A topic with fewer partitions is read by the first tasks only.
	parts["r"] = 1
	r = Plan(input(3, subs, parts, "A f -1"))
	if got := r.partitions(parts, r.Tasks["A"]); !cmp.Equal(got, map[string][]int32{"l": {0, 1}, "r": {0}}) {
		t.Errorf("partitions of A: %v", got)
	}
}

func TestPlanLetsOtherStatesWait(t *testing.T) {
	parts := map[string]int32{"t": 2}
	check(t, input(3, oneSub, parts, "A f 2: t/0 t/1", "B g -1"), `
		A [s/0 s/1]
		B [] waits: its topology has another state fingerprint than the one in force
	`)
	r := check(t, input(3, oneSub, parts, "B g 2", "C h 2: t/0"), `
		B [] waits: no member has the state fingerprint in force
		C [] waits: no member has the state fingerprint in force
	`)
	if !r.NobodyInForce {
		t.Error("the plan does not say that nobody has the fingerprint in force")
	}
	// What a waiting member still claims is revoked before another gets it.
	check(t, input(3, oneSub, parts, "A f 2: t/1", "B g 2: t/0"), `
		A [s/1]
		B [] waits: its topology has another state fingerprint than the one in force
		s/0 "B" -> "A"
	`)
}

// Equal fingerprints should mean equal sub-topologies. If they do not, no task goes to
// a member that reads other topics for it.
func TestPlanGivesNoTaskToAMemberThatReadsOtherTopics(t *testing.T) {
	in := input(1, oneSub, map[string]int32{"t": 2, "u": 2}, "A f -1", "B f -1")
	in.Members[1].Data.Subs = []Sub{{"s", []string{"t", "u"}}, {"v", []string{"u"}}}
	check(t, in, `
		A [s/0 s/1]
		B [v/0 v/1]
	`)
}

func TestPlanFormats(t *testing.T) {
	in := input(3, oneSub, map[string]int32{"t": 1}, "A f 2", "B f 2")
	in.Members[1].Data.FormatMin, in.Members[1].Data.FormatMax = 2, 3
	r := check(t, in, `
		A [s/0]
		B [] waits: it does not understand the group's format version in force
	`)
	if r.Format != 1 {
		t.Errorf("format %d", r.Format)
	}
	in.Members[1].Unreadable = true
	in.Members[1].Data = MemberData{Instance: "i-B"}
	check(t, in, `
		A [s/0]
		B [] waits: it does not understand the group's format version in force
	`)
}

// Every set of shares of a small group is tried; none may be better than that of extras.
func TestExtrasAgainstExhaustiveSearch(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		in := randomInput(rnd, 1+rnd.IntN(3), 1+rnd.IntN(4))
		p := newPlanner(in)
		p.judge()
		p.collect()
		p.own()
		share := p.extras()
		got := p.cost(share)
		best := p.bestCost(0, make([][]int, len(p.subs)))
		if got != best {
			t.Fatalf("seed %d: cost %v of shares %v, possible is %v", seed, got, share, best)
		}
	}
}

// cost is how uneven the sums are (sum of squares), then how many tasks do not stay.
func (p *planner) cost(share [][]int) [2]int {
	owned := p.owned()
	sums := make([]int, len(p.members))
	var c [2]int
	for i := range share {
		for m, n := range share[i] {
			sums[m] += n
			c[1] -= min(n, owned[i][m])
		}
	}
	for _, n := range sums {
		c[0] += n * n
	}
	return c
}

func (p *planner) bestCost(sub int, share [][]int) [2]int {
	if sub == len(p.subs) {
		return p.cost(share)
	}
	best := [2]int{1 << 30, 0}
	able := p.able[sub]
	for set := range 1 << len(able) {
		share[sub] = make([]int, len(p.members))
		n := 0
		for b, m := range able {
			share[sub][m] = p.counts[sub] / len(able)
			if set>>b&1 == 1 {
				share[sub][m]++
				n++
			}
		}
		if n == p.counts[sub]%len(able) {
			best = slices.MinFunc([][2]int{best, p.bestCost(sub+1, share)}, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
		}
	}
	return best
}

// randomInput makes a group whose members own tasks at random, each at most once.
func randomInput(rnd *rand.Rand, subs, members int) Input {
	in := Input{Generation: 2, StateFingerprint: "f", Partitions: map[string]int32{}}
	var list []Sub
	for s := range subs {
		topic := fmt.Sprintf("t%d", s)
		in.Partitions[topic] = int32(rnd.IntN(9))
		list = append(list, Sub{fmt.Sprintf("s%d", s), []string{topic}})
	}
	for m := range members {
		in.Members = append(in.Members, Member{
			ID: fmt.Sprintf("m%d", m), Generation: 1, Claims: map[string][]int32{},
			Data: MemberData{Instance: fmt.Sprintf("i%d", m), StateFingerprint: "f", Subs: list},
		})
	}
	for topic, n := range in.Partitions {
		for p := range n {
			if m := rnd.IntN(members + 1); m < members {
				in.Members[m].Claims[topic] = append(in.Members[m].Claims[topic], p)
			}
		}
	}
	return in
}

func TestPlanIsDeterministic(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		in := randomInput(rnd, 1+rnd.IntN(5), 1+rnd.IntN(6))
		want := show(Plan(in))
		rnd.Shuffle(len(in.Members), func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
		for _, m := range in.Members {
			for _, ps := range m.Claims {
				rnd.Shuffle(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
			}
		}
		if got := show(Plan(in)); got != want {
			t.Fatalf("seed %d: got\n%swant\n%s", seed, got, want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	in := randomInput(rand.New(rand.NewPCG(1, 2)), 50, 100)
	for topic := range in.Partitions {
		in.Partitions[topic] = 199
	}
	for b.Loop() {
		Plan(in)
	}
}

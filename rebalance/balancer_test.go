package rebalance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/rebalance"
)

const partitions = 6

// member is one client in the group and what its balancer was told.
type member struct {
	cl       *kgo.Client
	balancer *rebalance.Balancer

	mu    sync.Mutex
	self  rebalance.MemberData
	owned map[string][]int32
	order []string // callbacks in the order they came
}

func (m *member) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order = append(m.order, what)
}

type harness struct {
	t       *testing.T
	addrs   []string
	network *embedded.Network // nil: the real broker
	prefix  string            // of group and topics
	inForce string
	plans   chan rebalance.Result
}

// inGroup runs a test in virtual time, against a broker in memory.
func inGroup(t *testing.T, test func(h *harness)) {
	synctest.Test(t, func(t *testing.T) { test(newHarness(t)) })
}

func newHarness(t *testing.T) *harness {
	network := embedded.NewNetwork()
	b, err := embedded.Start(embedded.Options{ListenFn: network.Listen, Topics: map[string]int{"app-in": partitions, "app-x-repartition": partitions}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return &harness{t: t, addrs: b.Addrs(), network: network, prefix: "app", inForce: "f", plans: make(chan rebalance.Result, 1000)}
}

func (h *harness) start(instance, fingerprint string, opts ...kgo.Opt) *member {
	m := &member{owned: map[string][]int32{}, self: rebalance.MemberData{
		Instance: instance, Endpoint: instance + ":8080", Workers: 2, TransactionalPrefix: "app-" + instance,
		StateFingerprint: fingerprint, BuildFingerprint: "b",
		Subs: []rebalance.Sub{{ID: "in", Topics: []string{h.prefix + "-in"}}, {ID: "x", Topics: []string{h.prefix + "-x-repartition"}}},
	}}
	m.balancer = rebalance.NewBalancer(rebalance.Config{
		Self: func() rebalance.MemberData {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.self
		},
		InForce: func([]rebalance.Member) (string, error) { return h.inForce, nil },
		OnPlan:  func(r rebalance.Result) { h.plans <- r },
		OnAssignment: func(rebalance.Assignment) {
			m.note("assignment")
		},
	})
	change := func(what string, add bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			m.note(what)
			m.mu.Lock()
			defer m.mu.Unlock()
			for topic, ps := range parts {
				for _, p := range ps {
					if add {
						m.owned[topic] = append(m.owned[topic], p)
					} else if at := slices.Index(m.owned[topic], p); at >= 0 {
						m.owned[topic] = slices.Delete(m.owned[topic], at, at+1)
					}
				}
			}
		}
	}
	if h.network != nil {
		opts = append(opts, kgo.Dialer(h.network.Dialer(instance)))
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(h.addrs...),
		kgo.ConsumerGroup(h.prefix), kgo.ConsumeTopics(h.prefix+"-in", h.prefix+"-x-repartition"),
		kgo.Balancers(m.balancer), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(time.Second), kgo.SessionTimeout(10 * time.Second),
		kgo.OnPartitionsAssigned(change("assigned", true)),
		kgo.OnPartitionsRevoked(change("revoked", false)),
		kgo.OnPartitionsLost(change("lost", false)),
	}, opts...)...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(cl.Close)
	m.cl = cl
	return m
}

// settle waits until every member has heard of the same generation, in which all tasks
// are placed and the hosts number the members, and the callbacks have made it so.
func (h *harness) settle(members ...*member) []rebalance.Assignment {
	h.t.Helper()
	last := make([]rebalance.Assignment, len(members))
	h.await(func() bool {
		for i, m := range members {
			a := m.balancer.Last()
			if a == nil || len(a.Hosts) != len(members) || !placed(*a) || !m.has(a.Tasks()) {
				return false
			}
			if last[i] = *a; a.Generation != last[0].Generation {
				return false
			}
		}
		return true
	})
	return last
}

func placed(a rebalance.Assignment) bool {
	for _, p := range a.Placements {
		if slices.Contains(p.Owners, -1) || len(p.Owners) != partitions {
			return false
		}
	}
	return len(a.Placements) == 2
}

// has reports whether the partitions the client owns are those of the tasks.
func (m *member) has(tasks []rebalance.TaskID) bool {
	want := map[string][]int32{}
	for _, t := range tasks {
		want[t.Sub] = append(want[t.Sub], t.Partition)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.self.Subs {
		have := slices.Sorted(slices.Values(m.owned[s.Topics[0]]))
		if !slices.Equal(have, want[s.ID]) {
			return false
		}
	}
	return true
}

func TestBalancerJoinLeaveDie(t *testing.T) {
	inGroup(t, func(h *harness) {
		a := h.start("aa", "f")
		h.settle(a)
		b, c := h.start("bb", "f"), h.start("cc", "f")
		for i, got := range h.settle(a, b, c) {
			if n := len(got.Tasks()); n != 4 {
				h.t.Errorf("member %d has %d tasks, want 4", i, n)
			}
			if got.Hosts[got.Self].Endpoint != []string{"aa:8080", "bb:8080", "cc:8080"}[i] {
				h.t.Errorf("member %d is told it is %+v", i, got.Hosts[got.Self])
			}
			if owner, ok := got.Owner(rebalance.TaskID{Sub: "x", Partition: 3}); !ok || owner.Workers != 2 || owner.TransactionalPrefix != "app-"+owner.Instance {
				h.t.Errorf("owner of x/3: %+v %v", owner, ok)
			}
		}
		if b.balancer.Stale() {
			h.t.Error("a member whose data the leader has just heard is stale")
		}
		// A clean leave.
		c.cl.Close()
		h.settle(a, b)
		// A death: no leave request, the session runs out.
		d := h.start("dd", "f")
		h.settle(a, b, d)
		before := time.Now()
		h.network.Freeze("bb", true)
		defer h.network.Freeze("bb", false)
		for i, got := range h.settle(a, d) {
			if n := len(got.Tasks()); n != 6 {
				h.t.Errorf("member %d has %d tasks, want 6", i, n)
			}
		}
		if took := time.Since(before); took > 12*time.Second {
			h.t.Errorf("the others had everything after %v, the session is 10 s", took)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.order[0] != "assignment" {
			h.t.Errorf("first callback %q, want the assignment before the partitions", a.order[0])
		}
	})
}

func TestBalancerLetsOtherStatesWait(t *testing.T) {
	inGroup(t, func(h *harness) {
		a := h.start("aa", "f")
		h.settle(a)
		n := h.start("nn", "g")
		got := h.settle(a, n)
		if r, ok := got[1].WaitingFor(); !ok || r != rebalance.OtherState || len(got[1].Tasks()) != 0 {
			h.t.Errorf("newcomer with another state: reason %v, %v, tasks %v", r, ok, got[1].Tasks())
		}
		if _, ok := got[0].WaitingFor(); ok || len(got[0].Tasks()) != 2*partitions {
			h.t.Errorf("old member: tasks %v", got[0].Tasks())
		}
	})
}

func TestBalancerForceRebalanceCarriesNewData(t *testing.T) {
	inGroup(t, func(h *harness) {
		a, b := h.start("aa", "f"), h.start("bb", "f")
		h.settle(a, b)
		for i, m := range []*member{a, b} {
			m.mu.Lock()
			m.self.Endpoint = fmt.Sprintf("moved-%d:1", i)
			m.mu.Unlock()
			m.cl.ForceRebalance()
			h.await(func() bool {
				for _, l := range []*member{a, b} {
					if last := l.balancer.Last(); last == nil || last.Hosts[i].Endpoint != fmt.Sprintf("moved-%d:1", i) {
						return false
					}
				}
				return true
			})
		}
	})
}

// A broker gives a static member that restarts its old assignment and the old data,
// whatever its new metadata say. It can tell, and a forced rebalance mends it.
func TestBalancerStaticMemberIsStale(t *testing.T) {
	inGroup(t, func(h *harness) {
		a, b := h.start("aa", "f", kgo.InstanceID("s-a")), h.start("bb", "f", kgo.InstanceID("s-b"))
		h.settle(a, b)
		b.cl.Close() // static members do not leave
		// The in-process broker asks the leader where a real one does not, so the old answer
		// is put in here.
		again := h.start("b2", "f", kgo.InstanceID("s-b"))
		h.settle(a, again)
		if again.balancer.Stale() {
			h.t.Fatal("stale, although the leader has heard of the new data")
		}
		old := rebalance.Assignment{Format: 1, Hosts: []rebalance.Host{{Instance: "bb"}}}
		userData, err := old.Append(nil)
		if err != nil {
			h.t.Fatal(err)
		}
		answer := kmsg.ConsumerMemberAssignment{UserData: userData}
		if _, err := again.balancer.ParseSyncAssignment(answer.AppendTo(nil)); err != nil {
			h.t.Fatal(err)
		}
		if !again.balancer.Stale() {
			h.t.Fatal("an assignment made for other data is not stale")
		}
		again.cl.ForceRebalance()
		h.await(func() bool { return !again.balancer.Stale() })
	})
}

// A member that does not understand the format in force hears that it waits.
func TestBalancerReadsNewerFormatsAsWaiting(t *testing.T) {
	b := rebalance.NewBalancer(rebalance.Config{Self: func() rebalance.MemberData { return rebalance.MemberData{Instance: "aa"} }})
	b.JoinGroupMetadata(nil, nil, -1)
	newer := kmsg.ConsumerMemberAssignment{UserData: []byte{99, 1, 2, 3}}
	parts, err := b.ParseSyncAssignment(newer.AppendTo(nil))
	if err != nil || len(parts) != 0 {
		t.Fatalf("partitions %v, error %v", parts, err)
	}
	if r, ok := b.Last().WaitingFor(); !ok || r != rebalance.NoCommonFormat || b.Stale() {
		t.Errorf("reason %v %v, stale %v", r, ok, b.Stale())
	}
	newer.Topics = append(newer.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: "in", Partitions: []int32{1}})
	if _, err := b.ParseSyncAssignment(newer.AppendTo(nil)); err == nil {
		t.Error("partitions whose user data cannot be read were taken")
	}
}

func (h *harness) await(done func() bool) {
	h.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatal("it does not come to pass")
		}
	}
}

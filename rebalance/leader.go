package rebalance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// planning is the leader's part of a Balancer.
type planning struct{ b *Balancer }

// Balance implements kgo.ConsumerBalancerBalance.
func (p planning) Balance(cb *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan, err := p.plan(cb, topics)
	if err != nil {
		cb.SetError(err)
		return nil
	}
	return plan
}

func (p planning) plan(cb *kgo.ConsumerBalancer, topics map[string]int32) (assignments, error) {
	in := Input{Partitions: topics, Generation: cb.Info().Generation, Format: p.b.cfg.Format()}
	heard := make(map[string]Digest)
	cb.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		member := hear(m.MemberID, meta)
		if member.Data.Instance == "" && m.InstanceID != nil {
			member.Data.Instance = *m.InstanceID
		}
		heard[m.MemberID] = digest(meta.UserData)
		in.Members = append(in.Members, member)
	})
	var err error
	if in.StateFingerprint, err = p.b.cfg.InForce(in.Members); err != nil {
		return nil, fmt.Errorf("rebalance: settle the state fingerprint in force: %w", err)
	}
	result := Plan(in)
	if p.b.cfg.OnPlan != nil {
		p.b.cfg.OnPlan(result)
	}
	return result.encode(topics, heard)
}

// hear takes one member's word. What cannot be read makes the member wait; it does not
// stop the others.
func hear(id string, meta *kmsg.ConsumerMemberMetadata) Member {
	m := Member{ID: id, Generation: meta.Generation, Claims: make(map[string][]int32)}
	for _, o := range meta.OwnedPartitions {
		m.Claims[o.Topic] = append(m.Claims[o.Topic], o.Partitions...)
	}
	var err error
	m.Data, err = DecodeMember(meta.UserData)
	if _, ok := errors.AsType[*FormatError](err); err != nil {
		m.Unreadable = true
		if !ok {
			m.Data = MemberData{}
		}
	}
	return m
}

// assignments is a plan in the form the coordinator takes.
type assignments []kmsg.SyncGroupRequestGroupAssignment

// IntoSyncAssignment implements kgo.IntoSyncAssignment.
func (a assignments) IntoSyncAssignment() []kmsg.SyncGroupRequestGroupAssignment { return a }

func (r *Result) encode(topics map[string]int32, heard map[string]Digest) (assignments, error) {
	group, at := r.group()
	var out assignments
	for _, m := range r.Members {
		group.Self, group.Heard = at[m.ID], heard[m.ID]
		var sync kmsg.ConsumerMemberAssignment
		parts := r.partitions(topics, r.Tasks[m.ID])
		for _, t := range slices.Sorted(maps.Keys(parts)) {
			at := kmsg.NewConsumerMemberAssignmentTopic()
			at.Topic = t
			at.Partitions = parts[t]
			sync.Topics = append(sync.Topics, at)
		}
		var err error
		if sync.UserData, err = group.Append(nil); err != nil {
			return nil, err
		}
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID = m.ID
		a.MemberAssignment = sync.AppendTo(nil)
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b kmsg.SyncGroupRequestGroupAssignment) int { return strings.Compare(a.MemberID, b.MemberID) })
	return out, nil
}

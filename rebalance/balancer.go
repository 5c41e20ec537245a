package rebalance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Protocol is the name of the group protocol.
const Protocol = "tidemark"

// Config configures a Balancer. All functions run on the group client's goroutine
// and may not call the group client.
type Config struct {
	// Self returns what this member tells the leader, at every join. Equal data must
	// give equal bytes: the coordinator compares them. Required.
	Self func() MemberData
	// InForce is asked on the leader before each plan, with all members: it returns the
	// state fingerprint in force. It is where the leader switches when no member has the
	// recorded one. An error fails the round; the client tries again. Default: the
	// fingerprint of the first member.
	InForce func(members []Member) (fingerprint string, err error)
	// Format returns the user data version in force, 0 for the highest common one.
	// Default: 0.
	Format func() int
	// OnPlan is told every plan this member made as leader. Optional.
	OnPlan func(Result)
	// OnAssignment is told what the leader sent, before the client's OnPartitionsAssigned
	// and OnPartitionsRevoked. Optional.
	OnAssignment func(Assignment)
}

// Balancer is the group balancer: classic protocol, cooperative. Pass it to
// kgo.Balancers alone: a group that falls back to another one loses its user data.
type Balancer struct {
	cfg Config

	mu   sync.Mutex
	sent Digest      // of what this member last told the coordinator
	last *Assignment // what it last heard
}

// NewBalancer returns a balancer for one group client.
func NewBalancer(cfg Config) *Balancer {
	if cfg.InForce == nil {
		cfg.InForce = func(members []Member) (string, error) {
			if len(members) == 0 {
				return "", nil
			}
			return members[0].Data.StateFingerprint, nil
		}
	}
	if cfg.Format == nil {
		cfg.Format = func() int { return 0 }
	}
	return &Balancer{cfg: cfg}
}

var _ kgo.GroupBalancer = (*Balancer)(nil)

// ProtocolName returns Protocol.
func (b *Balancer) ProtocolName() string { return Protocol }

// IsCooperative returns true: members keep what they own while a rebalance runs.
func (b *Balancer) IsCooperative() bool { return true }

// JoinGroupMetadata encodes topics, claims and user data for the leader.
func (b *Balancer) JoinGroupMetadata(topics []string, owned map[string][]int32, generation int32) []byte {
	self := b.cfg.Self()
	version := b.cfg.Format()
	if version < FormatMin || version > FormatMax {
		version = FormatMax
	}
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version = 3
	meta.Topics = topics
	meta.Generation = generation
	for _, t := range slices.Sorted(maps.Keys(owned)) {
		o := kmsg.NewConsumerMemberMetadataOwnedPartition()
		o.Topic = t
		o.Partitions = owned[t]
		meta.OwnedPartitions = append(meta.OwnedPartitions, o)
	}
	if self.Rack != "" {
		meta.Rack = &self.Rack
	}
	// The error can only be about numbers the caller made up; without user data the
	// leader lists the member as waiting, which is how it gets noticed.
	meta.UserData, _ = self.Append(nil, version)
	b.mu.Lock()
	b.sent = digest(meta.UserData)
	b.mu.Unlock()
	return meta.AppendTo(nil)
}

// ParseSyncAssignment decodes the assignment and hands its user data to OnAssignment.
// User data in a format this build does not understand makes the member wait instead
// of failing: the leader has given it no partition.
func (b *Balancer) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	parts := make(map[string][]int32)
	if len(assignment) == 0 {
		return parts, nil
	}
	var sync kmsg.ConsumerMemberAssignment
	if err := sync.ReadFrom(assignment); err != nil {
		return nil, fmt.Errorf("rebalance: parse the assignment: %w: %v", ErrUserData, err)
	}
	for _, t := range sync.Topics {
		parts[t.Topic] = t.Partitions
	}
	a, err := DecodeAssignment(sync.UserData)
	if fe, ok := errors.AsType[*FormatError](err); ok && len(parts) == 0 {
		self := b.cfg.Self()
		a = Assignment{Format: fe.Have, Hosts: []Host{{Instance: self.Instance}},
			Waiting: []Waiting{{self.Instance, NoCommonFormat}}}
	} else if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if err != nil {
		a.Heard = b.sent
	}
	b.last = &a
	b.mu.Unlock()
	if b.cfg.OnAssignment != nil {
		b.cfg.OnAssignment(a)
	}
	return parts, nil
}

// Last returns the last assignment this member received, nil before the first. It must
// not be modified.
func (b *Balancer) Last() *Assignment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Stale reports whether the last assignment rests on other data than the member last
// sent: a static member that came back with a new endpoint or topology is given its
// old assignment without the leader being asked. The remedy is Client.ForceRebalance.
func (b *Balancer) Stale() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last != nil && b.last.Heard != b.sent
}

// MemberBalancer decodes the members on the leader.
func (b *Balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	cb, err := kgo.NewConsumerBalancer(planning{b}, members)
	if err != nil {
		return nil, nil, fmt.Errorf("rebalance: decode the members: %w", err)
	}
	return cb, cb.MemberTopics(), nil
}

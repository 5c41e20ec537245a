package rebalance

import (
	"errors"

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

// Balancer is the group balancer: classic protocol, cooperative.
type Balancer struct {
	cfg Config
}

// NewBalancer returns a balancer for one group client; pass it to kgo.Balancers alone.
func NewBalancer(cfg Config) *Balancer { return &Balancer{cfg: cfg} }

var _ kgo.GroupBalancer = (*Balancer)(nil)

// ProtocolName returns Protocol.
func (b *Balancer) ProtocolName() string { return Protocol }

// IsCooperative returns true.
func (b *Balancer) IsCooperative() bool { return true }

// JoinGroupMetadata encodes topics, claims and user data for the leader.
func (b *Balancer) JoinGroupMetadata(topics []string, owned map[string][]int32, generation int32) []byte {
	return nil
}

// ParseSyncAssignment decodes the assignment and hands its user data to OnAssignment.
func (b *Balancer) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	return nil, errors.New("rebalance: not built yet")
}

// MemberBalancer decodes the members on the leader.
func (b *Balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	return nil, nil, errors.New("rebalance: not built yet")
}

// Heard returns the last assignment this member received, nil before the first.
func (b *Balancer) Heard() *Assignment { return nil }

// Stale reports whether the leader's last word about this member rests on other data
// than the member has now: a static member that came back with a new endpoint or
// topology is given its old assignment without the leader being asked. The remedy is
// Client.ForceRebalance.
func (b *Balancer) Stale() bool { return false }

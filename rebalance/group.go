package rebalance

// Host is one instance in the host map.
type Host struct {
	Instance            string
	Endpoint            string
	Rack                string
	Workers             int
	TransactionalPrefix string
}

// Waiting is a member that gets no task, and why.
type Waiting struct {
	Instance string
	Reason   Reason
}

// Reason says why a member gets no task.
type Reason uint8

// The reasons.
const (
	// OtherState: its state fingerprint is not the one in force.
	OtherState Reason = iota + 1
	// NoCommonFormat: it does not understand the user data version in force.
	NoCommonFormat
	// NoState: no member has the state fingerprint in force.
	NoState
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case OtherState:
		return "its topology has another state fingerprint than the one in force"
	case NoCommonFormat:
		return "it does not understand the group's format version in force"
	case NoState:
		return "no member has the state fingerprint in force; the leader is switching"
	}
	return "unknown reason"
}

// Placement is the owners of one sub-topology's tasks.
type Placement struct {
	Sub string
	// Owners holds an index into Assignment.Hosts per partition; -1: nobody in this
	// round, the task is on its way or nobody can run it.
	Owners []int
}

// Assignment is what a member hears from the leader: its own tasks and the map of
// the whole group.
type Assignment struct {
	// Format is the user data version in force.
	Format int
	// Generation is the group generation the plan was made for.
	Generation int32
	// StateFingerprint is the one in force.
	StateFingerprint string
	// Tasks are the member's own, sorted. They follow from the assigned partitions.
	Tasks []TaskID
	// Hosts are all members of the group, sorted by instance.
	Hosts []Host
	// Placements is sorted by sub-topology.
	Placements []Placement
	// Waiting lists the members that get no task, sorted by instance.
	Waiting []Waiting
	// Self is the digest of what the leader last heard of this member.
	Self Digest
}

// Owner returns the host that runs a task.
func (a *Assignment) Owner(t TaskID) (Host, bool) {
	for _, p := range a.Placements {
		if p.Sub == t.Sub && t.Partition >= 0 && int(t.Partition) < len(p.Owners) && p.Owners[t.Partition] >= 0 {
			return a.Hosts[p.Owners[t.Partition]], true
		}
	}
	return Host{}, false
}

// Digest stands for the bytes of a MemberData; equal data have equal digests.
type Digest uint64

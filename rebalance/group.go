package rebalance

import (
	"fmt"
	"slices"

	"github.com/tidemark/tidemark/internal/wire"
)

// Host is one member in the host map.
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
		return "no member has the state fingerprint in force"
	}
	return fmt.Sprintf("reason %d, which this build does not know", uint8(r))
}

// Placement is the owners of one sub-topology's tasks.
type Placement struct {
	Sub string
	// Owners holds an index into Assignment.Hosts per partition; -1: nobody in this
	// round, the task is on its way.
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
	// Self is the index of this member in Hosts.
	Self int
	// Heard is the digest of what the leader last heard of this member.
	Heard Digest
	// Hosts are all members of the group, sorted by instance, waiting ones included.
	Hosts []Host
	// Placements is sorted by sub-topology.
	Placements []Placement
	// Waiting lists the members that get no task, sorted by instance.
	Waiting []Waiting
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

// Tasks returns the tasks of the member the assignment was made for, sorted.
func (a *Assignment) Tasks() []TaskID {
	var own []TaskID
	for _, p := range a.Placements {
		for n, o := range p.Owners {
			if o == a.Self {
				own = append(own, TaskID{p.Sub, int32(n)})
			}
		}
	}
	slices.SortFunc(own, TaskID.Compare)
	return own
}

// WaitingFor returns why the member the assignment was made for gets no task.
func (a *Assignment) WaitingFor() (Reason, bool) {
	if a.Self >= len(a.Hosts) {
		return 0, false
	}
	for _, w := range a.Waiting {
		if w.Instance == a.Hosts[a.Self].Instance {
			return w.Reason, true
		}
	}
	return 0, false
}

// Append appends the encoding in the format version a.Format.
//
//	+---------+---------------+-------------------+---------+--------+
//	| version | uv generation | state fingerprint | uv self | heard  |
//	| 1 byte  |               |                   |         | 8      |
//	+---------+---------------+-------------------+---------+--------+
//	| hosts   | placements    | waiting                              |
//	+---------+---------------+--------------------------------------+
//	host      = instance, endpoint, rack, uv 2*workers + own, txn prefix
//	placement = sub, uv tasks, per task uv owner+1 (0: nobody)
//	waiting   = uv host, 1 byte reason
//
// Each list begins with its uv count. An instance id is packed (appendHex); the other
// strings of a host share text with those of the host before (appendShared), and with
// own = 1 the prefix is written without the instance id it ends in. One byte per task and about twenty per host keep the
// assignments of 100 members with 1,000 tasks below 500 kB all together: the
// coordinator stores them in one record.
func (a *Assignment) Append(dst []byte) ([]byte, error) {
	if a.Format < FormatMin || a.Format > FormatMax {
		return dst, &FormatError{"assignment", a.Format}
	}
	if a.Generation < 0 || a.Self < 0 || a.Self >= len(a.Hosts) {
		return dst, fmt.Errorf("rebalance: encode assignment: generation %d, host %d of %d", a.Generation, a.Self, len(a.Hosts))
	}
	dst = append(dst, byte(a.Format))
	dst = wire.AppendUvarint(dst, uint64(a.Generation))
	dst = wire.AppendString(dst, a.StateFingerprint)
	dst = wire.AppendUvarint(dst, uint64(a.Self))
	dst = wire.AppendUint64(dst, uint64(a.Heard))
	return a.appendGroup(dst)
}

// appendGroup appends what is the same for every member.
func (a *Assignment) appendGroup(dst []byte) ([]byte, error) {
	dst = wire.AppendUvarint(dst, uint64(len(a.Hosts)))
	var last Host
	for _, h := range a.Hosts {
		if h.Workers < 0 {
			return dst, fmt.Errorf("rebalance: encode assignment: %d workers of %q", h.Workers, h.Instance)
		}
		dst = appendHex(dst, h.Instance)
		dst = appendShared(dst, last.Endpoint, h.Endpoint)
		dst = appendShared(dst, last.Rack, h.Rack)
		base, own := cutInstance(h)
		dst = wire.AppendUvarint(dst, uint64(h.Workers)<<1|own)
		dst = appendShared(dst, last.TransactionalPrefix, base)
		last = h
		last.TransactionalPrefix = base
	}
	dst = wire.AppendUvarint(dst, uint64(len(a.Placements)))
	for _, p := range a.Placements {
		dst = wire.AppendString(dst, p.Sub)
		dst = wire.AppendUvarint(dst, uint64(len(p.Owners)))
		for _, o := range p.Owners {
			if o < -1 || o >= len(a.Hosts) {
				return dst, fmt.Errorf("rebalance: encode assignment: owner %d of %d hosts", o, len(a.Hosts))
			}
			dst = wire.AppendUvarint(dst, uint64(o+1))
		}
	}
	dst = wire.AppendUvarint(dst, uint64(len(a.Waiting)))
	for _, w := range a.Waiting {
		at := slices.IndexFunc(a.Hosts, func(h Host) bool { return h.Instance == w.Instance })
		if at < 0 {
			return dst, fmt.Errorf("rebalance: encode assignment: waiting %q is no host", w.Instance)
		}
		dst = wire.AppendUvarint(dst, uint64(at))
		dst = append(dst, byte(w.Reason))
	}
	return dst, nil
}

// cutInstance returns the transactional prefix without the instance id at its end,
// and 1 if it was there.
func cutInstance(h Host) (base string, own uint64) {
	if n := len(h.TransactionalPrefix) - len(h.Instance); n >= 0 && h.Instance != "" && h.TransactionalPrefix[n:] == h.Instance {
		return h.TransactionalPrefix[:n], 1
	}
	return h.TransactionalPrefix, 0
}

// DecodeAssignment parses what Append wrote. The error is a *FormatError for a version
// this build does not understand, else ErrUserData.
func DecodeAssignment(b []byte) (Assignment, error) {
	r := wire.NewReader(b)
	a := Assignment{Format: int(r.Byte())}
	if r.Err() == nil && (a.Format < FormatMin || a.Format > FormatMax) {
		return Assignment{Format: a.Format}, &FormatError{"assignment", a.Format}
	}
	a.Generation = r.Int32()
	a.StateFingerprint = r.String()
	a.Self = int(r.Int32())
	a.Heard = Digest(r.Uint64())
	var last Host
	for range r.Count(5) {
		h := Host{Instance: readHex(r), Endpoint: readShared(r, last.Endpoint), Rack: readShared(r, last.Rack)}
		workers := r.Uvarint()
		base := readShared(r, last.TransactionalPrefix)
		if workers>>1 > 1<<31-1 {
			r.Bytes(-1)
		}
		h.Workers = int(workers >> 1)
		h.TransactionalPrefix = base
		last = h
		if workers&1 == 1 {
			h.TransactionalPrefix += h.Instance
		}
		a.Hosts = append(a.Hosts, h)
	}
	for range r.Count(2) {
		p := Placement{Sub: r.String()}
		for range r.Count(1) {
			owner := int(r.Int32()) - 1
			if owner >= len(a.Hosts) {
				r.Bytes(-1)
			}
			p.Owners = append(p.Owners, owner)
		}
		a.Placements = append(a.Placements, p)
	}
	for range r.Count(2) {
		at, reason := int(r.Int32()), Reason(r.Byte())
		if at >= len(a.Hosts) {
			r.Bytes(-1)
			break
		}
		a.Waiting = append(a.Waiting, Waiting{a.Hosts[at].Instance, reason})
	}
	if a.Self >= len(a.Hosts) {
		r.Bytes(-1)
	}
	if err := closed(r, "assignment"); err != nil {
		return Assignment{}, err
	}
	return a, nil
}

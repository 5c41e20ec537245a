package rebalance

// Member is a member of the group as the leader sees it in one round.
type Member struct {
	ID   string // the coordinator's member id
	Data MemberData
	// Claims are the partitions the member says it owns, by topic.
	Claims map[string][]int32
	// Generation is the last one the member was part of; claims of an older one are
	// overruled by those of a newer. -1 when it has none.
	Generation int32
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
	// Tasks per member id, sorted. Every member has an entry.
	Tasks map[string][]TaskID
	// Topics per sub-topology, as the members in force have them, sorted by id.
	Subs []Sub
	// Withheld are the moves that wait for a revocation, sorted by task. While there
	// are any, another round follows.
	Withheld []Move
	// Waiting are the members that get nothing, with the reason, in the order of Members.
	Waiting map[string]Reason
	// NobodyInForce: no member has the fingerprint in force. All get nothing, and it is
	// the leader's turn to check compatibility and to switch.
	NobodyInForce bool
	// Unplaced are tasks no eligible member knows, sorted.
	Unplaced []TaskID
}

// Plan assigns tasks to members. It is deterministic: equal inputs, in whatever order
// of members, give equal results.
func Plan(in Input) Result {
	return Result{}
}

package rebalance

// The format versions of user data this build understands, both ways.
const (
	FormatMin = 1
	FormatMax = 1
)

// MemberData is what a member tells the leader about itself.
type MemberData struct {
	// FormatMin and FormatMax are the user data versions the member understands.
	// Zero means those of this build.
	FormatMin, FormatMax int
	// Instance is the id kept in the state directory.
	Instance string
	// Endpoint is where the instance answers queries, host:port; may be empty.
	Endpoint string
	// Rack is where the instance runs; may be empty.
	Rack string
	// Workers is the number of workers, hence of transactional ids.
	Workers int
	// TransactionalPrefix is what the instance's transactional ids begin with; worker
	// n of Workers uses TransactionalPrefix + "-" + n.
	TransactionalPrefix string
	// StateFingerprint and BuildFingerprint are those of the member's topology.
	StateFingerprint, BuildFingerprint string
	// Subs holds the sub-topologies the member can run, sorted by id.
	Subs []Sub
}

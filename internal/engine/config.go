package engine

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// Guarantee says what a crash may do to results.
type Guarantee int

const (
	// ExactlyOnce moves input offsets, state and output in one Kafka transaction.
	ExactlyOnce Guarantee = iota
	// AtLeastOnce commits offsets after the output is acknowledged; a crash may count records twice.
	AtLeastOnce
)

// Policy says what happens to something that cannot be processed.
type Policy int

const (
	// Fail ends Run with an error after committing everything before.
	Fail Policy = iota
	// DeadLetter sends the record to the dead-letter topic, in the same transaction, and goes on.
	DeadLetter
	// Resume goes on from the progress record's offsets. It is a policy for changed group offsets only.
	Resume
)

// Start says where an input without a committed offset begins.
type Start int

const (
	// Earliest begins with the oldest record the topic still holds.
	Earliest Start = iota
	// Latest begins with records that arrive after the first start.
	Latest
)

// Config holds everything the engine is given. The root package documents the fields for users and fills
// the defaults; durations must be positive unless a comment says otherwise.
type Config struct {
	// App is the application id: group, prefix of internal topics and of transactional ids.
	App string
	// Client holds the options of every client: seeds, dialer, TLS, SASL.
	Client []kgo.Opt
	// GroupOpts are further options of the group client.
	GroupOpts []kgo.Opt
	// Workers is the number of processing goroutines. Default: GOMAXPROCS.
	Workers int
	// Guarantee says what a crash may do.
	Guarantee Guarantee
	// OnError is Fail or DeadLetter, OnOffsets Fail or Resume.
	OnError, OnOffsets Policy
	// StartAt is where an input begins that was never read.
	StartAt Start
	// AllowNonRestored are ids of operators whose state may be left behind by a topology without them.
	AllowNonRestored []string
	// Static is the group.instance.id; empty means dynamic membership.
	Static string
	// Endpoint and Rack are published to the group.
	Endpoint, Rack string
	// Replicas is the replication factor of internal topics. Default: -1, the broker's.
	Replicas int16

	// CommitInterval is the time between commits. Default: 100 ms.
	CommitInterval time.Duration
	// OverlayBytes is the uncommitted state and output of a worker's current generation that force an early commit.
	// Default: 64 MiB.
	OverlayBytes int64
	// QueueBytes bounds the fetched records that wait in the instance. Default: 32 MiB.
	QueueBytes int64
	// RestoreBytes is the memory of the last-value maps of all restores under way. Default: 128 MiB.
	RestoreBytes int64
	// MaxTaskIdle is how long a task waits for an input that is known to have records. Default: 1 s.
	MaxTaskIdle time.Duration
	// SessionTimeout and Heartbeat are the group's. Defaults: 10 s, 1 s.
	SessionTimeout, Heartbeat time.Duration
	// RevokeBudget is how long a revocation waits for the last commit. Default: 5 s.
	RevokeBudget time.Duration
	// TransactionTimeout is the broker's limit for an open transaction. Default: 10 s.
	TransactionTimeout time.Duration
	// PurgeInterval is the time between deletions of consumed repartition records. Default: 30 s.
	PurgeInterval time.Duration
	// StateOptions are the limits of the state of all tasks together; they are shared out evenly.
	StateOptions store.Options

	// LockState takes the state directory for this process. It returns the instance id kept in it and the
	// number of workers of the former run, and notes the given one.
	LockState func(workers int) (instance string, former int, release func(), err error)
	// OpenStore opens the database of a task.
	OpenStore func(id processor.TaskID) (store.DB, error)
	// SetAside moves a damaged database of a task out of the way.
	SetAside func(id processor.TaskID) error
	// Wipe removes the database of a task that cannot be rolled forward.
	Wipe func(id processor.TaskID) error

	// Snapshots, if not nil, keeps copies of the databases.
	Snapshots *Snapshots

	// Clock and Rand are what tests replace. Rand is used under the engine's lock only.
	Clock clock.Clock
	Rand  *rand.Rand
	// Logger, Metrics and Events are where the engine tells what it does. Defaults: nowhere.
	Logger  *zap.Logger
	Metrics *Metrics
	Events  Events
	// CrashPoint is called at the numbered steps of the protocol; tests kill the process in it.
	CrashPoint func(point Point)
}

// setDefaults fills what is zero.
func (c *Config) setDefaults() {
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	def(&c.CommitInterval, 100*time.Millisecond)
	def(&c.OverlayBytes, 64<<20)
	def(&c.QueueBytes, 32<<20)
	def(&c.MaxTaskIdle, time.Second)
	def(&c.SessionTimeout, 10*time.Second)
	def(&c.Heartbeat, time.Second)
	def(&c.RevokeBudget, 5*time.Second)
	def(&c.TransactionTimeout, 10*time.Second)
	def(&c.PurgeInterval, 30*time.Second)
	def(&c.StateOptions.ViewBytes, 64<<20) // shared out over tasks, so a zero would not reach the store's own default
	def(&c.StateOptions.LayerBytes, 64<<20)
	def(&c.RestoreBytes, 128<<20)
	if c.Snapshots != nil {
		c.Snapshots.setDefaults()
	}
	if c.Replicas == 0 {
		c.Replicas = -1
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil, c.App)
	}
	if c.CrashPoint == nil {
		c.CrashPoint = func(Point) {}
	}
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

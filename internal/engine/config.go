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
	App        string
	Client     []kgo.Opt // seeds, dialer, TLS, SASL: options of every client
	GroupOpts  []kgo.Opt // extra options of the group client
	StateDir   string
	Workers    int
	Guarantee  Guarantee
	OnError    Policy
	OnOffsets  Policy // Fail or Resume
	StartAt    Start
	Static     string // group.instance.id, empty for dynamic membership
	Endpoint   string
	Rack       string
	Replicas   int16 // of internal topics; -1 for the broker's default
	Partitions int   // of repartition topics whose count the topology leaves open; 0 derives it

	CommitInterval     time.Duration
	OverlayBytes       int64 // uncommitted state and output of a worker that force an early commit
	QueueBytes         int64 // fetched records waiting in the instance
	MaxTaskIdle        time.Duration
	SessionTimeout     time.Duration
	Heartbeat          time.Duration
	RevokeBudget       time.Duration
	TransactionTimeout time.Duration
	PurgeInterval      time.Duration
	StateOptions       store.Options
	RestoreBytes       int64 // last-value maps of all restores under way

	// LockState takes the state directory for this process. It returns the instance id kept in it and the
	// number of workers of the former run, and notes the given one.
	LockState func(workers int) (instance string, former int, release func(), err error)
	// OpenStore opens the database of a task.
	OpenStore func(id processor.TaskID) (store.DB, error)
	// SetAside moves a damaged database of a task out of the way.
	SetAside func(id processor.TaskID) error
	// Wipe removes the database of a task that cannot be rolled forward.
	Wipe func(id processor.TaskID) error

	Clock   clock.Clock
	Rand    *rand.Rand // used under the engine's lock only
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
	def(&c.RestoreBytes, 128<<20)
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

package tidemark

import (
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/store"
)

// Config is the configuration of an App. Brokers is required; the zero value of every other field is a
// sensible default.
type Config struct {
	// AllowNonRestored are ids of operators that the topology no longer has and whose state may be left behind: without
	// it such a topology is refused. An id may stay here for ever. Default: none.
	AllowNonRestored []string
	// App is the application id: the consumer group and the prefix of internal topics and transactional ids.
	// Two apps on one cluster must not share it. Default: the name of the topology.
	App string
	// Brokers are the addresses of some brokers, host:port. Required.
	Brokers []string
	// CacheBytes is the memory for state, in bytes: decoded rows, committed rows on their way to disk, and the
	// block cache. Rows with uncommitted changes come on top, see MaxUncommittedBytes. The block cache, an eighth, is
	// outside of Go's heap in programs built with cgo: set GOMEMLIMIT as much lower there. Default: 320 MiB.
	CacheBytes int64
	// CommitInterval is the time between commits. Shorter means earlier visible results, longer less work for
	// the broker. Default: 100 ms.
	CommitInterval time.Duration
	// Endpoint is the address, host:port, at which other instances and clients reach this one for queries. It
	// is published to the group. Default: none.
	Endpoint string
	// Events are optional callbacks about the life of the instance. Default: none.
	Events Events
	// FetchBufferBytes bounds the fetched records that wait for a worker, in bytes; above it fetching pauses.
	// Default: 32 MiB.
	FetchBufferBytes int64
	// Guarantee is ExactlyOnce or AtLeastOnce. Default: ExactlyOnce.
	Guarantee Guarantee
	// HeartbeatInterval is the time between the group's heartbeats; it bounds how fast a partition moves.
	// Default: 1 s, at most a third of SessionTimeout.
	HeartbeatInterval time.Duration
	// InstanceID makes membership static: a restart within SessionTimeout gets its tasks back without a
	// rebalance. It must be unique in the group. Default: none, dynamic membership.
	InstanceID string
	// Kafka holds how to connect.
	Kafka Kafka
	// Logger receives transitions, never single records. Default: nothing is logged.
	Logger *zap.Logger
	// MaxTaskIdle is how long a task with several input partitions waits for one that is known to have
	// records but whose records have not arrived. Default: 1 s.
	MaxTaskIdle time.Duration
	// MaxUncommittedBytes is the size of uncommitted state and unacknowledged output of one worker, in bytes, at which it
	// commits early: changed rows with what their commit will make of them, and records in the producer. There may be
	// twice as much, while one transaction is ending and the next one fills. Default: 64 MiB.
	MaxUncommittedBytes int64
	// OnError says what happens to a record that cannot be processed: Fail ends Run, DeadLetter writes it to
	// <App>-dead-letter in the same transaction. Default: Fail.
	OnError Policy
	// OnOffsetsChanged says what happens when the group's offsets are not those of the last commit: Fail ends
	// Run with ErrOffsetsChanged, Resume goes on from the last commit. Default: Fail.
	OnOffsetsChanged Policy
	// PurgeInterval is the time between deletions of consumed repartition records. Default: 30 s.
	PurgeInterval time.Duration
	// Rack is where the instance runs. Default: none.
	Rack string
	// Registerer receives the Prometheus metrics. Default: they are not registered.
	Registerer prometheus.Registerer
	// ReplicationFactor is that of the internal topics. Default: the broker's.
	ReplicationFactor int16
	// RevokeBudget bounds how long a rebalance waits for the last commit of a task that moves. Default: 5 s.
	RevokeBudget time.Duration
	// SessionTimeout is how long the group waits for a silent instance. Default: 10 s.
	SessionTimeout time.Duration
	// Snapshots keeps copies of the tasks' databases in an object store, so that an instance that takes a task over need
	// not replay all of its changelogs. Default: none.
	Snapshots Snapshots
	// StartAt says where an input begins that the app has never read. Default: Earliest.
	StartAt Start
	// StateDir holds the databases, one directory per task under <StateDir>/<App>, and the instance's
	// identity. One process at a time can use it. Default: state is kept in memory and restored at every start.
	StateDir string
	// TransactionTimeout is when the broker aborts a transaction that nobody ends. Default: 10 s.
	TransactionTimeout time.Duration
	// Workers is the number of goroutines that process, each with a producer of its own. Default: GOMAXPROCS.
	Workers int

	// Testing holds what tests replace.
	Testing Testing
}

// Kafka says how to connect.
type Kafka struct {
	// TLS is used for every connection when it is not nil.
	TLS *tls.Config
	// SASL is tried in this order.
	SASL []sasl.Mechanism
	// Opts are further options for every client, such as a dialer or a logger. Options about isolation,
	// offsets, partitioning and transactions have no effect.
	Opts []kgo.Opt
}

const (
	defaultCache = 320 << 20
	// metadataMinAge is how long a client trusts what it knows of topics. It waits so long before it looks again
	// for a topic that has just been created, several times in a first start; the client's default is 5 s.
	metadataMinAge = 100 * time.Millisecond
	// maxDuration is what fits the 32-bit milliseconds of Kafka's requests.
	maxDuration = (1<<31 - 1) * time.Millisecond
)

func (c *Config) setDefaults(topology string) {
	if c.App == "" {
		c.App = topology
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCache
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 10 * time.Second
	}
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = min(time.Second, c.SessionTimeout/3)
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}

// check reports everything that is wrong.
func (c *Config) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("tidemark: config: %s: %s", field, fmt.Sprintf(format, args...)))
	}
	if len(c.Brokers) == 0 {
		bad("Brokers", "is required")
	}
	if c.Workers < 0 {
		bad("Workers", "is %d, must not be negative", c.Workers)
	}
	for _, d := range []struct {
		field string
		d     time.Duration
	}{
		{"CommitInterval", c.CommitInterval}, {"HeartbeatInterval", c.HeartbeatInterval}, {"MaxTaskIdle", c.MaxTaskIdle},
		{"PurgeInterval", c.PurgeInterval}, {"RevokeBudget", c.RevokeBudget}, {"SessionTimeout", c.SessionTimeout},
		{"TransactionTimeout", c.TransactionTimeout},
	} {
		if d.d < 0 || d.d > maxDuration {
			bad(d.field, "is %v, must be between 0 and %v", d.d, maxDuration)
		}
	}
	if c.HeartbeatInterval > c.SessionTimeout/3 {
		bad("HeartbeatInterval", "is %v, must be at most a third of SessionTimeout, %v", c.HeartbeatInterval, c.SessionTimeout/3)
	}
	if c.TransactionTimeout > 15*time.Minute {
		bad("TransactionTimeout", "is %v, brokers allow at most 15m by default", c.TransactionTimeout)
	}
	if c.CacheBytes < 0 || c.MaxUncommittedBytes < 0 || c.FetchBufferBytes < 0 {
		bad("CacheBytes, MaxUncommittedBytes, FetchBufferBytes", "must not be negative")
	}
	errs = append(errs, c.Snapshots.check(c.StateDir)...)
	if c.OnError == Resume {
		bad("OnError", "Resume is a policy of OnOffsetsChanged only")
	}
	if c.OnOffsetsChanged == DeadLetter {
		bad("OnOffsetsChanged", "DeadLetter is a policy of OnError only")
	}
	return errors.Join(errs...)
}

// client returns the options of every Kafka client.
func (c *Config) client() []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID("tidemark-" + c.App), kgo.MetadataMinAge(metadataMinAge),
	}, c.Kafka.Opts...)
	if c.Kafka.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.Kafka.TLS))
	}
	if len(c.Kafka.SASL) > 0 {
		opts = append(opts, kgo.SASL(c.Kafka.SASL...))
	}
	return opts
}

// engine translates the configuration for the engine.
func (c *Config) engine(s *stores) engine.Config {
	return engine.Config{
		App: c.App, AllowNonRestored: c.AllowNonRestored, Client: c.client(), Workers: c.Workers, Guarantee: c.Guarantee,
		OnError: c.OnError, OnOffsets: c.OnOffsetsChanged, StartAt: c.StartAt, Static: c.InstanceID,
		Endpoint: c.Endpoint, Rack: c.Rack, Replicas: c.ReplicationFactor,
		CommitInterval: c.CommitInterval, OverlayBytes: c.MaxUncommittedBytes, QueueBytes: c.FetchBufferBytes,
		MaxTaskIdle: c.MaxTaskIdle, SessionTimeout: c.SessionTimeout, Heartbeat: c.HeartbeatInterval,
		RevokeBudget: c.RevokeBudget, TransactionTimeout: c.TransactionTimeout, PurgeInterval: c.PurgeInterval,
		RestoreBytes: c.CacheBytes / 2,
		StateOptions: store.Options{ViewBytes: s.viewBytes, LayerBytes: s.layerBytes},
		LockState:    s.lockDir, OpenStore: s.open, SetAside: s.setAside, Wipe: s.wipe,
		Snapshots: c.snapshots(s),
		Clock:     c.Testing.Clock, Rand: c.Testing.Rand, Logger: c.Logger, Events: c.Events,
		Metrics: engine.NewMetrics(c.Registerer, c.App), CrashPoint: c.Testing.CrashPoint,
	}
}

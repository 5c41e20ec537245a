package embedded

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Options says what Start starts. The zero value is one broker in memory on a free port.
type Options struct {
	// Port is the port of the first broker on 127.0.0.1; further brokers take the ports after it.
	// Default 0: free ports.
	Port int
	// Brokers is the number of nodes. Default 1.
	Brokers int
	// DataDir keeps topics, groups and transactions on disk, to be found again by the next Start
	// with the same directory. Default "": in memory. Only one broker may use a directory at a time.
	DataDir string
	// SyncWrites makes every produce durable before it is acknowledged. Default false: a crash of
	// the machine may lose the last records.
	SyncWrites bool
	// Topics are created with this many partitions each unless they exist.
	Topics map[string]int
	// DefaultPartitions is used for a topic created without a count. Default 1.
	DefaultPartitions int
	// Configs are broker configurations, such as "message.max.bytes", over the defaults of this
	// package (log.cleaner.backoff.ms of a day, see cluster).
	Configs map[string]string
	// ListenFn replaces net.Listen; Network.Listen fits. It must return addresses that the clients'
	// dialer understands.
	ListenFn func(network, address string) (net.Listener, error)
	// MaxVersions limits the requests the broker knows. Default nil: all it implements.
	MaxVersions *kversion.Versions
	// TransactionVersion 1 gives the transaction protocol before KIP-890 part 2, by limiting
	// MaxVersions to those of Kafka 3.9 when it is nil. Default 0: version 2.
	TransactionVersion int
	// Extra options are applied last.
	Extra []kfake.Opt
}

// Broker is a running in-process cluster. All methods are safe for concurrent use.
type Broker struct {
	cluster *kfake.Cluster
	addrs   []string
}

// Start starts the broker and creates the missing topics. The caller must Close it.
func Start(o Options) (*Broker, error) {
	cluster, err := kfake.NewCluster(o.cluster()...)
	if err != nil {
		return nil, fmt.Errorf("embedded: start: %w", err)
	}
	b := &Broker{cluster: cluster, addrs: cluster.ListenAddrs()}
	for _, topic := range slices.Sorted(maps.Keys(o.Topics)) {
		if err := b.CreateTopic(topic, o.Topics[topic], nil); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

func (o Options) cluster() []kfake.Opt {
	nodes, partitions := max(o.Brokers, 1), max(o.DefaultPartitions, 1)
	// The cleaner of this broker drops the markers of aborted transactions and keeps listing the transactions: a
	// read_committed reader then misses what the same producer commits later. Compaction saves space only, so it
	// hardly ever runs; tests call Cluster().Compact() where they want it.
	configs := map[string]string{"log.cleaner.backoff.ms": "86400000"}
	maps.Copy(configs, o.Configs)
	opts := []kfake.Opt{
		kfake.NumBrokers(nodes),
		kfake.DefaultNumPartitions(partitions),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(configs),
	}
	if o.Port != 0 {
		ports := make([]int, nodes)
		for i := range ports {
			ports[i] = o.Port + i
		}
		opts = append(opts, kfake.Ports(ports...))
	}
	if o.DataDir != "" {
		opts = append(opts, kfake.DataDir(o.DataDir))
	}
	if o.SyncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	if o.ListenFn != nil {
		opts = append(opts, kfake.ListenFn(o.ListenFn))
	}
	versions := o.MaxVersions
	if versions == nil && o.TransactionVersion == 1 {
		versions = kversion.V3_9_0()
	}
	if versions != nil {
		opts = append(opts, kfake.MaxVersions(versions))
	}
	return append(opts, o.Extra...)
}

// CreateTopic creates a topic unless it exists; the partition count of an existing topic is not
// looked at. Configs may be nil.
func (b *Broker) CreateTopic(topic string, partitions int, configs map[string]string) error {
	if b.cluster.TopicInfo(topic) != nil {
		return nil
	}
	if err := b.cluster.CreateTopic(topic, int32(partitions), configs); err != nil {
		return fmt.Errorf("embedded: create topic %q: %w", topic, err)
	}
	return nil
}

// Addrs returns the addresses of all nodes, as kgo.SeedBrokers takes them.
func (b *Broker) Addrs() []string { return slices.Clone(b.addrs) }

// Cluster gives access to fault injection (Fault, ControlKey), to group and partition state and to
// leader moves.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the broker and, with a DataDir, saves its state first. Connections of clients are
// closed. Further calls do nothing.
func (b *Broker) Close() { b.cluster.Close() }

package engine_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/topology"
)

// session is the session time-out of the instances of a scene, dead the time after which a silent one is gone.
const (
	session = 2 * time.Second
	dead    = 2 * session
)

// scene is a broker, a network and some instances in simulated time: what waits costs nothing.
type scene struct {
	t      *testing.T
	net    *embedded.Network
	broker *embedded.Broker
	client []kgo.Opt   // of the test itself
	cl     *kgo.Client // a plain one
	reader *changelog.Reader
	seen   map[[16]byte]map[int32]*seen // by topic id
	lives  int
	nodes  []*node
}

// simulate runs a script on a broker with these topics, in a bubble.
func simulate(t *testing.T, o embedded.Options, script func(t *testing.T, s *scene)) {
	t.Helper()
	simulateAs(t, o, nil, script)
}

// simulateAs is simulate with further options of the test's own clients.
func simulateAs(t *testing.T, o embedded.Options, as []kgo.Opt, script func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, net: embedded.NewNetwork(), seen: make(map[[16]byte]map[int32]*seen)}
		o.ListenFn = s.net.Listen
		var err error
		if s.broker, err = embedded.Start(o); err != nil {
			t.Fatal(err)
		}
		s.client = []kgo.Opt{kgo.SeedBrokers(s.broker.Addrs()...), kgo.Dialer(s.net.Dialer("test")), kgo.MetadataMinAge(20 * time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression())}
		s.client = append(s.client, as...)
		s.connect()
		defer s.close()
		script(t, s)
	})
}

// connect makes the plain client, anew when topics were replaced that the old one remembers.
func (s *scene) connect() {
	s.t.Helper()
	if s.cl != nil {
		s.cl.Close()
		s.reader.Close()
	}
	var err error
	if s.reader, err = changelog.NewReader(changelog.ReaderConfig{Client: s.client}); err != nil {
		s.t.Fatal(err)
	}
	if s.cl, err = kgo.NewClient(append(s.client, kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) close() {
	s.net.Intercept(nil)
	for _, n := range s.nodes {
		n.cancel()
	}
	for _, n := range s.nodes {
		<-n.done
		if n.err != nil && !n.dead() && !n.judged {
			s.t.Errorf("instance %s ended: %v", n.client, n.err)
		}
	}
	s.cl.Close()
	s.reader.Close()
	s.broker.Close()
}

// pass lets time pass.
func (s *scene) pass(d time.Duration) { time.Sleep(d) }

// await lets time pass until cond holds, for at most two minutes.
func (s *scene) await(what string, cond func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("in vain: %s", what)
		}
	}
}

// rec is a record to produce or one that was read, as "key=value@time" of a partition.
type rec struct {
	topic     string
	partition int32
	offset    int64
	key       []byte
	value     []byte
	ms        int64
	headers   []kgo.RecordHeader
}

// send produces records and waits for their acknowledgement.
func (s *scene) send(recs ...rec) {
	s.t.Helper()
	s.sendBy(s.cl, recs)
}

// sendHuge is send for records beyond the client's usual limit.
func (s *scene) sendHuge(recs ...rec) {
	s.t.Helper()
	cl, err := kgo.NewClient(append(s.client, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(8<<20))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	s.sendBy(cl, recs)
}

func (s *scene) sendBy(cl *kgo.Client, recs []rec) {
	s.t.Helper()
	var out []*kgo.Record
	for _, r := range recs {
		k := &kgo.Record{Topic: r.topic, Partition: r.partition, Key: r.key, Value: r.value, Headers: r.headers}
		if r.ms != 0 {
			k.Timestamp = time.UnixMilli(r.ms)
		}
		out = append(out, k)
	}
	if err := cl.ProduceSync(s.t.Context(), out...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// feed produces n records numbered from first on, with their number as value and number modulo keys as key,
// spread over the partitions as a co-partitioning client does.
func (s *scene) feed(topic string, first, n, keys int) {
	s.t.Helper()
	parts := int32(len(s.broker.Cluster().PartitionInfos(topic)))
	var recs []rec
	for i := first; i < first+n; i++ {
		k := i % keys
		recs = append(recs, rec{topic: topic, partition: int32(k) % parts, key: fmt.Appendf(nil, "k%d", k), value: fmt.Appendf(nil, "%d", i)})
	}
	s.send(recs...)
}

// bounds returns the bounds of every partition of a topic.
func (s *scene) bounds(topic string) map[changelog.TopicPartition]changelog.Bounds {
	out := make(map[changelog.TopicPartition]changelog.Bounds)
	for _, p := range s.broker.Cluster().PartitionInfos(topic) {
		out[tp(topic, p.Partition)] = changelog.Bounds{Start: p.LogStartOffset, HighWatermark: p.HighWatermark, LastStable: p.LastStableOffset}
	}
	return out
}

// seen is what was read of one partition so far.
type seen struct {
	next int64
	recs []rec
}

// read returns what a read_committed consumer has seen of a topic until now, partition by partition.
func (s *scene) read(topic string) []rec {
	s.t.Helper()
	info := s.broker.Cluster().TopicInfo(topic)
	if info == nil {
		return nil
	}
	parts := s.seen[info.TopicID]
	if parts == nil {
		parts = make(map[int32]*seen)
		s.seen[info.TopicID] = parts
	}
	var out []rec
	bounds := s.bounds(topic)
	for p := range int32(len(bounds)) {
		b := bounds[tp(topic, p)]
		at := parts[p]
		if at == nil {
			at = &seen{next: b.Start}
			parts[p] = at
		}
		if at.next < b.LastStable {
			part := []changelog.Partition{{Topic: topic, Partition: p, From: at.next, Target: b.LastStable}}
			_, err := s.reader.Read(s.t.Context(), part, func(_ int, k *kgo.Record) error {
				at.recs = append(at.recs, rec{topic, p, k.Offset, k.Key, k.Value, k.Timestamp.UnixMilli(), k.Headers})
				return nil
			}, func(int, int64, int64) {})
			if err != nil {
				s.t.Fatal(err)
			}
			at.next = b.LastStable
		}
		out = append(out, at.recs...)
	}
	return out
}

// produced returns the number of records of a topic, aborted ones and markers included.
func (s *scene) produced(topic string) (n int64) {
	for _, b := range s.bounds(topic) {
		n += b.HighWatermark - b.Start
	}
	return n
}

// committed returns what the app's group has committed for a topic.
func (s *scene) committed(topic string) map[int32]changelog.Committed {
	out := make(map[int32]changelog.Committed)
	for _, p := range s.broker.Cluster().PartitionInfos(topic) {
		out[p.Partition] = changelog.Committed{Offset: -1}
	}
	if g := s.broker.Cluster().GroupInfo("app"); g != nil {
		for p, c := range g.Commits[topic] {
			out[p] = changelog.Committed{Found: true, Offset: c.Offset, Metadata: c.Metadata}
		}
	}
	return out
}

// caughtUp waits until everything in the topics is committed.
func (s *scene) caughtUp(topics ...string) {
	s.t.Helper()
	for _, topic := range topics {
		s.await(topic+" committed to its end", func() bool {
			c := s.committed(topic)
			for tp, b := range s.bounds(topic) {
				if b.LastStable != b.HighWatermark || max(c[tp.Partition].Offset, 0) < b.HighWatermark && !s.onlyMarkers(tp, c[tp.Partition].Offset, b.HighWatermark) {
					return false
				}
			}
			return true
		})
	}
}

// onlyMarkers says whether a log holds nothing visible from an offset on.
func (s *scene) onlyMarkers(tp changelog.TopicPartition, from, to int64) bool {
	for _, r := range s.read(tp.Topic) {
		if r.partition == tp.Partition && r.offset >= from && r.offset < to {
			return false
		}
	}
	return true
}

// counting is the app of most scenes: every record of in is counted by key, every count goes to out.
func counting() *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Count("counts", topology.EveryUpdate()).To("out")
	return top
}

// counts waits until the counts of n records numbered from 0 over the keys are in a topic, and checks that each
// count of each key is there once, in order.
func (s *scene) counts(topic string, n, keys int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d counts in %s", n, topic), func() bool { return len(s.read(topic)) >= n })
	last := make(map[string]int64)
	for _, r := range s.read(topic) {
		v := int64(binary.BigEndian.Uint64(r.value))
		if k := string(r.key); v != last[k]+1 {
			s.t.Errorf("%s: count %d of key %s follows %d", topic, v, k, last[k])
		}
		last[string(r.key)] = v
	}
	for k := range min(keys, n) {
		want := int64(n / keys)
		if k < n%keys {
			want++
		}
		if got := last[fmt.Sprintf("k%d", k)]; got != want {
			s.t.Errorf("%s: key k%d was counted %d times, want %d", topic, k, got, want)
		}
	}
}

// copying is an app without state: every record goes to out.
func copying() *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").To("out")
	return top
}

// copies waits for n values numbered from 0 and checks that each is there once.
func (s *scene) copies(topic string, n int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d records in %s", n, topic), func() bool { return len(s.read(topic)) >= n })
	seen := make(map[string]int)
	for _, r := range s.read(topic) {
		seen[string(r.value)]++
	}
	for i := range n {
		if got := seen[fmt.Sprint(i)]; got != 1 {
			s.t.Errorf("%s: record %d is there %d times", topic, i, got)
		}
	}
	if len(seen) != n {
		s.t.Errorf("%s: %d different records, want %d", topic, len(seen), n)
	}
}

// mustCreate creates a topic with configs.
func (s *scene) mustCreate(topic string, partitions int, configs map[string]string) {
	s.t.Helper()
	if err := s.broker.CreateTopic(topic, partitions, configs); err != nil {
		s.t.Fatal(err)
	}
}

// grow gives a topic more partitions.
func (s *scene) grow(topic string, partitions int) {
	s.t.Helper()
	r, err := kadm.NewClient(s.cl).UpdatePartitions(s.t.Context(), partitions, topic)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// commit writes an offset of the group as somebody from outside does.
func (s *scene) commit(topic string, partition int32, offset int64, metadata string) {
	s.t.Helper()
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1, Metadata: metadata})
	if err := kadm.NewClient(s.cl).CommitAllOffsets(s.t.Context(), "app", o); err != nil {
		s.t.Fatal(err)
	}
}

// forget removes what the group has committed, all of it or of one partition.
func (s *scene) forget(topic string, partitions ...int32) {
	s.t.Helper()
	set := make(kadm.TopicsSet)
	set.Add(topic, partitions...)
	r, err := kadm.NewClient(s.cl).DeleteOffsets(s.t.Context(), "app", set)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// transact produces n records to partition 0 of a topic in one transaction and ends it.
func (s *scene) transact(topic string, end kgo.TransactionEndTry, n int) {
	s.t.Helper()
	cl, err := kgo.NewClient(append(s.client, kgo.TransactionalID("somebody"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: make([]byte, 8)}
		if err := cl.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(s.t.Context(), end); err != nil {
		s.t.Fatal(err)
	}
}

// open produces records in a transaction that stays open until the function it returns is called.
func (s *scene) open(recs ...rec) (end func(kgo.TransactionEndTry)) {
	s.t.Helper()
	cl, err := kgo.NewClient(append(s.client, kgo.TransactionalID("slow"), kgo.TransactionTimeout(10*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	s.sendBy(cl, recs)
	return func(how kgo.TransactionEndTry) {
		s.t.Helper()
		defer cl.Close()
		if err := cl.EndTransaction(s.t.Context(), how); err != nil {
			s.t.Fatal(err)
		}
	}
}

// claim rewrites progress record and group so that both say that the input was read to an offset.
func (s *scene) claim(progress, input string, offset int64) {
	s.t.Helper()
	b := s.bounds(progress)[tp(progress, 0)]
	tail, err := s.reader.ReadTail(s.t.Context(), progress, 0, b.HighWatermark)
	if err != nil {
		s.t.Fatal(err)
	}
	p := *tail.Record
	p.Offsets = []changelog.TopicOffset{{Topic: input, Offset: offset}}
	value, err := p.Append(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	md := s.committed(input)[0].Metadata
	s.send(rec{topic: progress, key: []byte(changelog.ProgressKey), value: value})
	s.commit(input, 0, offset, md)
}

// stand keeps the goroutine it runs on from going on, as a slow function or a stopped process does.
func stand(d time.Duration) { time.Sleep(d) }

package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
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
		s.client = []kgo.Opt{kgo.SeedBrokers(s.broker.Addrs()...), kgo.Dialer(s.net.Dialer("test")), kgo.MetadataMinAge(20 * time.Millisecond)}
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

// node is one life of an instance.
type node struct {
	s      *scene
	name   string
	client string
	disk   storage
	cancel context.CancelFunc
	done   chan struct{}
	e      *engine.Engine
	reg    *prometheus.Registry
	logs   *observer.ObservedLogs
	err    error // once done
	judged bool  // the test has looked at err

	mu       sync.Mutex
	crashed  bool
	at       func(engine.Point)
	states   map[processor.TaskID]engine.TaskState
	opened   map[processor.TaskID]int // times a task began to open
	restores []engine.RestoreInfo
	commits  int
	phases   []string
	stuck    []engine.StuckInfo
}

// start starts a life of the named instance with a disk, nil for an empty one.
func (s *scene) start(name string, top *topology.Topology, d storage, change func(*engine.Config)) *node {
	s.t.Helper()
	n := s.prepare(name, top, d, change)
	n.run()
	return n
}

// prepare makes an instance without running it.
func (s *scene) prepare(name string, top *topology.Topology, d storage, change func(*engine.Config)) *node {
	s.t.Helper()
	s.lives++
	if d == nil {
		d = new(disk)
	}
	n := &node{
		s: s, name: name, client: fmt.Sprintf("%s#%d", name, s.lives), disk: d, done: make(chan struct{}), reg: prometheus.NewRegistry(),
		states: make(map[processor.TaskID]engine.TaskState), opened: make(map[processor.TaskID]int),
	}
	plan, err := top.Build()
	if err != nil {
		s.t.Fatal(err)
	}
	core, logs := observer.New(zap.InfoLevel)
	n.logs = logs
	log := zaptest.NewLogger(s.t, zaptest.Level(zap.InfoLevel), zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) })))
	cfg := engine.Config{
		App: "app",
		Client: []kgo.Opt{
			kgo.SeedBrokers(s.broker.Addrs()...), kgo.Dialer(s.dialer(n.client)), kgo.MetadataMinAge(20 * time.Millisecond),
			kgo.RetryTimeout(time.Second),
		},
		GroupOpts: []kgo.Opt{kgo.Dialer(s.dialer(n.group())), kgo.ClientID(n.client)},
		Workers:   1, CommitInterval: 50 * time.Millisecond,
		SessionTimeout: session, Heartbeat: session / 10, RevokeBudget: 500 * time.Millisecond,
		TransactionTimeout: 5 * time.Second, PurgeInterval: time.Second,
		StateOptions: store.Options{LayerAge: time.Second},
		LockState:    func(workers int) (string, int, func(), error) { return name, workers, func() {}, nil },
		OpenStore:    d.open, Wipe: d.wipe, SetAside: d.setAside,
		Logger: log.Named(n.client), Rand: rand.New(rand.NewPCG(7, uint64(s.lives))),
		Metrics: engine.NewMetrics(n.reg, "app"),
		Events:  n.events(),
		CrashPoint: func(p engine.Point) {
			n.mu.Lock()
			f := n.at
			n.mu.Unlock()
			if f != nil && !n.dead() {
				f(p)
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	if n.e, err = engine.New(plan, cfg); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// dialer gives up after a while, as the client's own does.
func (s *scene) dialer(client string) func(context.Context, string, string) (net.Conn, error) {
	dial := s.net.Dialer(client)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return dial(ctx, network, address)
	}
}

func (n *node) run() {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.s.nodes = append(n.s.nodes, n)
	go func() {
		defer close(n.done)
		n.err = n.e.Run(ctx)
	}()
}

func (n *node) events() engine.Events {
	locked := func(f func()) {
		n.mu.Lock()
		defer n.mu.Unlock()
		f()
	}
	return engine.Events{
		Phase: func(i engine.PhaseInfo) { locked(func() { n.phases = append(n.phases, i.Phase) }) },
		Task: func(i engine.TaskInfo) {
			locked(func() {
				n.states[i.Task] = i.State
				if i.State == engine.Opening {
					n.opened[i.Task]++
				}
			})
		},
		Restore: func(i engine.RestoreInfo) { locked(func() { n.restores = append(n.restores, i) }) },
		Commit:  func(engine.CommitInfo) { locked(func() { n.commits++ }) },
		Stuck:   func(i engine.StuckInfo) { locked(func() { n.stuck = append(n.stuck, i) }) },
	}
}

// group is the name of the connections of the group client, apart from all others.
func (n *node) group() string { return n.client + "/group" }

// onPoint has f called at every crash point from now on, on the engine's goroutines.
func (n *node) onPoint(f func(engine.Point)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = f
}

// dieAt crashes the instance when it comes to a point for the nth time.
func (n *node) dieAt(p engine.Point, nth int) {
	n.onPoint(func(q engine.Point) {
		n.mu.Lock()
		hit := q == p
		if hit {
			nth--
		}
		hit = hit && nth == 0
		n.mu.Unlock()
		if hit {
			n.crash()
		}
	})
}

// running returns the tasks that run here.
func (n *node) running() []processor.TaskID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []processor.TaskID
	for id, s := range n.states {
		if s == engine.Running {
			out = append(out, id)
		}
	}
	return out
}

// awaitTasks waits until exactly that many tasks run here.
func (n *node) awaitTasks(want int) {
	n.s.t.Helper()
	n.s.await(fmt.Sprintf("%d tasks on %s", want, n.client), func() bool {
		n.mustLive()
		return len(n.running()) == want
	})
}

func (n *node) mustLive() {
	n.s.t.Helper()
	if n.ended() {
		n.judged = true
		n.s.t.Fatalf("instance %s has ended: %v", n.client, n.err)
	}
}

func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

func (n *node) dead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.crashed
}

func (n *node) commitCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.commits
}

// restored returns the finished restores.
func (n *node) restored() []engine.RestoreInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []engine.RestoreInfo
	for _, i := range n.restores {
		if i.Finished {
			out = append(out, i)
		}
	}
	return out
}

// said returns how often the log has a message that contains text, in itself or in a field.
func (n *node) said(text string) (hits int) {
	for _, l := range n.logs.All() {
		if strings.Contains(l.Message+" "+fmt.Sprint(l.ContextMap()), text) {
			hits++
		}
	}
	return hits
}

// metric returns the sum of a counter or gauge over the series with these labels, given as pairs.
func (n *node) metric(name string, labels ...string) (sum float64) {
	n.s.t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		n.s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "tidemark_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			have := make(map[string]string)
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			fits := true
			for i := 0; i < len(labels); i += 2 {
				fits = fits && have[labels[i]] == labels[i+1]
			}
			if fits {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// stop ends the instance as SIGTERM does and returns its disk.
func (n *node) stop() storage {
	n.s.t.Helper()
	n.cancel()
	<-n.done
	n.judged = true
	if n.err != nil {
		n.s.t.Errorf("instance %s ended: %v", n.client, n.err)
	}
	return n.disk
}

// crash ends the instance as kill -9 does, from any goroutine: nothing it still does gets out.
func (n *node) crash() {
	n.mu.Lock()
	n.crashed = true
	n.mu.Unlock()
	for _, c := range []string{n.client, n.group()} {
		n.s.net.Freeze(c, true) // refused dials would come back at once, and the client's retries then never let time pass
		n.s.net.Cut(c)
	}
	n.mu.Lock()
	n.disk = n.disk.found()
	n.mu.Unlock()
	n.cancel()
}

// remains returns the disk a crashed instance leaves.
func (n *node) remains() storage {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.disk
}

// freeze stops all bytes of the instance, or lets them go on, as SIGSTOP does for its partners.
func (n *node) freeze(on bool) {
	n.s.net.Freeze(n.client, on)
	n.s.net.Freeze(n.group(), on)
}

// failed waits until Run has ended and returns its error, which must wrap want.
func (n *node) failed(want error) error {
	n.s.t.Helper()
	n.s.await(fmt.Sprintf("the end of %s by %v", n.client, want), n.ended)
	n.judged = true
	if !errors.Is(n.err, want) {
		n.s.t.Fatalf("instance %s ended: %v\nwant %v", n.client, n.err, want)
	}
	return n.err
}

// refused is failed, and the message must contain all of the words.
func (n *node) refused(want error, words ...string) {
	n.s.t.Helper()
	err := n.failed(want)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			n.s.t.Errorf("no %q in %q", w, err)
		}
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

// phase says whether the instance was told of a phase that begins like this.
func (n *node) phase(prefix string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.phases {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return false
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

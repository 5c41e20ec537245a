package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

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
			kgo.RetryTimeout(time.Second), kgo.ProducerBatchCompression(kgo.NoCompression()), // the race detector pays for every buffer
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

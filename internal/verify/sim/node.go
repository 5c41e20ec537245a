package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// Node is one life of an instance.
type Node struct {
	w      *World
	Name   string // of the instance, and part of its transactional ids
	client string // name of its connections, new in every life
	disk   disk
	engine *engine.Engine
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	joined atomic.Bool
	dead   bool // crashed: what it still does reaches nobody
}

// Group is the name of the connections of the group client, apart from the others: cut off, the instance is a
// member that does not know that it is none any more.
func (n *Node) Group() string { return n.client + "/group" }

// clients returns the names of all its connections.
func (n *Node) clients() []string { return []string{n.client, n.Group()} }

// dial connects. To the dead every broker is slow to refuse: some clients try again without a pause.
func (n *Node) dial(client string) func(context.Context, string, string) (net.Conn, error) {
	d := n.w.net.Dialer(client)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if n.isDead() {
			time.Sleep(200 * time.Millisecond)
		}
		return d(ctx, network, address)
	}
}

// Start starts a life of the named instance. at is called at every crash point.
func (w *World) Start(name string, at func(n *Node, p engine.Point)) (*Node, error) {
	w.mu.Lock()
	w.lives++
	n := &Node{w: w, Name: name, client: fmt.Sprintf("%s#%d", name, w.lives), done: make(chan struct{})}
	n.disk = w.disks[name]
	if n.disk == nil {
		n.disk = newMemDisk()
		if w.set.Pebble {
			n.disk = newPebbleDisk(pebblestore.NewMemFS(), w.bucket != nil)
		}
		w.disks[name] = n.disk
	}
	w.mu.Unlock()
	plan, err := workload.Topology(App, w.topics).Build()
	if err != nil {
		return nil, err
	}
	log := w.log.With(zap.String("life", n.client))
	cfg := engine.Config{
		App: App,
		Client: []kgo.Opt{
			kgo.SeedBrokers(w.broker.Addrs()...), kgo.Dialer(n.dial(n.client)), kgo.RetryTimeout(w.set.RetryTimeout),
			kgo.MetadataMinAge(50 * time.Millisecond),
		},
		GroupOpts: []kgo.Opt{kgo.Dialer(n.dial(n.Group())), kgo.ClientID(n.client)},
		Workers:   w.set.Workers, CommitInterval: w.set.Commit, OverlayBytes: w.set.Overlay,
		SessionTimeout: Session, Heartbeat: Session / 10, RevokeBudget: 500 * time.Millisecond,
		TransactionTimeout: 4 * time.Second, PurgeInterval: 500 * time.Millisecond,
		StateOptions: store.Options{ViewBytes: w.set.ViewBytes, LayerBytes: w.set.LayerBytes, LayerAge: time.Second},
		LockState:    func(workers int) (string, int, func(), error) { return name, workers, func() {}, nil },
		OpenStore:    n.disk.open, Wipe: n.disk.wipe, SetAside: n.disk.wipe,
		Events: engine.Events{Phase: func(p engine.PhaseInfo) {
			if p.Phase == "joining" {
				n.joined.Store(true)
			}
		}},
		Logger: log, Rand: rand.New(rand.NewPCG(w.set.Seed, uint64(w.lives))),
		CrashPoint: func(p engine.Point) {
			if at != nil && !n.isDead() {
				at(n, p)
			}
		},
	}
	if w.bucket != nil {
		d := n.disk.(*pebbleDisk)
		// As a process does when it has locked its directory.
		if err := d.Sweep(); err != nil {
			return nil, err
		}
		c := w.set.Copies
		cfg.Snapshots = &engine.Snapshots{
			Store: w.bucket.of(n), Interval: c.Interval, Grace: c.Grace, Keep: c.Keep, Restore: c.Restore, FetchRate: c.Rate,
			Format: pebblestore.FormatVersion(), Dir: d,
		}
	}
	if n.engine, err = engine.New(plan, cfg); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	go func() {
		defer close(n.done)
		n.err = n.engine.Run(ctx)
		switch {
		case n.err == nil || n.isDead():
		case !n.joined.Load():
			w.note("start of %s failed: %v", n.client, n.err) // no network, no start
		default:
			w.fail("instance %s ended: %v", n.client, n.err)
		}
	}()
	return n, nil
}

func (n *Node) isDead() bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.dead
}

func (n *Node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// Crash ends the instance as kill -9 does, from any goroutine: nothing it still does gets out, and its disk is
// what it was. keep says whether the next life finds it. It does nothing once nothing is to fail any more.
func (n *Node) Crash(keep bool) {
	n.w.mu.Lock()
	if n.dead || n.w.calm {
		n.w.mu.Unlock()
		return
	}
	n.dead = true
	rng := rand.New(rand.NewPCG(n.w.set.Seed, uint64(len(n.w.nodes))))
	n.w.mu.Unlock()
	for _, c := range n.clients() {
		n.w.net.Refuse(c, true)
	}
	d, err := n.disk.crash(rng)
	if err != nil {
		n.w.fail("crash of %s: %v", n.client, err)
	}
	n.w.note("crash of %s, disk kept: %v", n.client, keep)
	n.w.snapshot(n.client, d)
	n.w.mu.Lock()
	delete(n.w.disks, n.Name)
	if keep {
		n.w.disks[n.Name] = d
	}
	n.w.mu.Unlock()
	n.cancel()
	n.w.timers.Go(func() { n.bury() })
}

// bury removes a dead member from the group when its session is over. The in-process broker does that by
// itself, unless the connection was gone when it answered JoinGroup: then it starts no session timer.
func (n *Node) bury() {
	time.Sleep(2 * Session)
	g := n.w.broker.Cluster().GroupInfo(App)
	if g == nil {
		return
	}
	for _, m := range g.Members {
		if m.ClientID != n.client {
			continue
		}
		n.w.note("%s is still a member, removed", n.client)
		if err := n.w.eye.Evict(context.Background(), m.MemberID); err != nil {
			n.w.fail("%v", err)
		}
	}
}

// Stop ends the instance cleanly and waits.
func (n *Node) Stop() {
	n.w.note("stop of %s", n.client)
	n.cancel()
	<-n.done
}

// Cut resets all connections.
func (n *Node) Cut() {
	for _, c := range n.clients() {
		n.w.net.Cut(c)
	}
}

// Freeze stops all bytes of the instance for a time, as SIGSTOP does for its partners.
func (n *Node) Freeze(d time.Duration) {
	n.w.note("freeze %s for %v", n.client, d)
	for _, c := range n.clients() {
		n.w.freeze(c, d)
	}
}

// FreezeGroup holds back what the instance has to say to the group: it goes on reading and committing as a member
// that it is not any more.
func (n *Node) FreezeGroup(d time.Duration) {
	n.w.note("the group hears nothing of %s for %v", n.client, d)
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.mute[n.Group()] = time.Now().Add(d)
}

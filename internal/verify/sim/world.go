package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/store"
)

// App is the application id of every simulation.
const App = "app"

// Session is the session time-out of every simulated instance.
const Session = 2 * time.Second

// Partitions is the partition count of every topic of the workloads.
const Partitions = 2

// Settings are what differs between simulations.
type Settings struct {
	Seed         uint64
	Pebble       bool // Pebble on a crashing file system instead of a map
	TV1          bool // transaction.version 1
	Workers      int
	Keys         int
	Commit       time.Duration
	RetryTimeout time.Duration // after which a client gives a request up
	ViewBytes    int64
	LayerBytes   int64
	Overlay      int64
	Copies       Copies
	Echo         bool // write the log to standard error as well
}

// String is the plan of a simulation on one line.
func (s Settings) String() string {
	disk := "memory"
	if s.Pebble {
		disk = "Pebble"
	}
	version := 2
	if s.TV1 {
		version = 1
	}
	return fmt.Sprintf("seed %d: disk %s, transaction.version %d, workers %d, keys %d, commit %v, retries %v, view bytes %d, layer bytes %d, overlay %d, snapshots: %v",
		s.Seed, disk, version, s.Workers, s.Keys, s.Commit, s.RetryTimeout, s.ViewBytes, s.LayerBytes, s.Overlay, s.Copies)
}

// World is one simulation.
type World struct {
	set    Settings
	rng    *rand.Rand // of the script
	net    *embedded.Network
	broker *embedded.Broker
	topics workload.Topics
	load   *witness.Loader
	eye    *witness.Witness
	client []kgo.Opt
	log    *zap.Logger
	buf    *lockedBuffer
	timers sync.WaitGroup
	bucket *bucket   // nil without snapshots
	calmAt time.Time // when the bucket became calm

	mu       sync.Mutex
	lives    int
	nodes    []*Node
	disks    map[string]disk // by instance, for the next life
	found    []*witness.Disk // what crashes left
	report   check.Report
	judge    func(embedded.Request) embedded.Verdict
	calm     bool                 // nothing is to fail any more, planned or not
	compared int                  // databases made of snapshots
	mute     map[string]time.Time // group clients whose group requests are held back, and until when
}

// lockedBuffer keeps the log of a simulation.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	echo bool
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.echo {
		os.Stderr.Write(p)
	}
	return l.b.Write(p)
}

func (l *lockedBuffer) Sync() error { return nil }

// New makes a world: broker, topics, loader and witness, no instance yet.
func New(s Settings) (*World, error) {
	w := &World{
		set: s, rng: rand.New(rand.NewPCG(s.Seed, 1)), net: embedded.NewNetwork(), topics: workload.Named("w"),
		disks: make(map[string]disk), mute: make(map[string]time.Time), buf: &lockedBuffer{echo: s.Echo},
	}
	enc := zap.NewDevelopmentEncoderConfig()
	enc.EncodeTime = zapcore.TimeEncoderOfLayout("04:05.000")
	w.log = zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), w.buf, zap.InfoLevel))
	w.note("%v", s)
	if s.Copies.On() {
		w.bucket = newBucket(w)
	}
	w.net.Intercept(func(r embedded.Request) embedded.Verdict {
		w.mu.Lock()
		f, until := w.judge, w.mute[r.Client]
		w.mu.Unlock()
		if d := time.Until(until); d > 0 && groupRequest(r.Key) {
			return embedded.Verdict{Delay: d}
		}
		if f == nil {
			return embedded.Verdict{}
		}
		return f(r)
	})
	o := embedded.Options{Brokers: 2, ListenFn: w.net.Listen, Topics: map[string]int{},
		// No compaction: it drops the abort markers but goes on listing the aborted transactions, after which a
		// client takes later, committed records of the same producer for aborted ones.
		Configs: map[string]string{"log.cleaner.backoff.ms": "86400000"}}
	if s.TV1 {
		o.TransactionVersion = 1
	}
	for _, t := range w.topics.All() {
		o.Topics[t] = Partitions
	}
	var err error
	if w.broker, err = embedded.Start(o); err != nil {
		return nil, err
	}
	w.client = []kgo.Opt{kgo.SeedBrokers(w.broker.Addrs()...), kgo.Dialer(w.net.Dialer("eye")), kgo.MetadataMinAge(50 * time.Millisecond)}
	if w.load, err = witness.NewLoader(w.client, workload.NewGenerator(w.topics, s.Keys, rand.New(rand.NewPCG(s.Seed, 2)))); err != nil {
		w.broker.Close()
		return nil, err
	}
	if w.eye, err = witness.New(w.client, App, w.topics, w.load); err != nil {
		w.load.Close()
		w.broker.Close()
		return nil, err
	}
	return w, nil
}

// groupRequest says whether a request is about membership.
func groupRequest(key int16) bool {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.SyncGroup:
		return true
	}
	return false
}

// Rand is the script's source of randomness.
func (w *World) Rand() *rand.Rand { return w.rng }

// Judge has f see every request of an instance.
func (w *World) Judge(f func(embedded.Request) embedded.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = f
}

// Produce sends inputs and waits for their acknowledgement.
func (w *World) Produce(n int) {
	ctx := context.Background()
	if err := errors.Join(w.load.Produce(ctx, n), w.load.Flush(ctx)); err != nil {
		w.fail("%v", err)
	}
}

// Sleep lets time pass.
func (w *World) Sleep(d time.Duration) { time.Sleep(d) }

// Alive returns the instances that run.
func (w *World) Alive() []*Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*Node
	for _, n := range w.nodes {
		if !n.dead && !n.ended() {
			out = append(out, n)
		}
	}
	return out
}

// Await lets time pass until cond holds, at most limit.
func (w *World) Await(what string, limit time.Duration, cond func() bool) bool {
	end := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(end) {
			w.note("%s did not happen within %v", what, limit)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

func (w *World) freeze(client string, d time.Duration) {
	w.net.Freeze(client, true)
	w.timers.Go(func() {
		time.Sleep(d)
		w.net.Freeze(client, false)
	})
}

func (w *World) note(format string, args ...any) { w.log.Info("=== " + fmt.Sprintf(format, args...)) }

// fail notes that something happened that must not.
func (w *World) fail(format string, args ...any) {
	w.note("FAIL: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Wrongly(format, args...)
}

// snapshot keeps what is on a disk, to be compared with the changelogs at the end.
func (w *World) snapshot(owner string, d disk) {
	plan, err := workload.Topology(App, w.topics).Build()
	if err != nil {
		w.fail("%v", err)
		return
	}
	for _, id := range d.tasks() {
		for _, sub := range plan.Subs {
			if sub.ID != id.Sub || len(sub.Stores) == 0 {
				continue
			}
			db, err := d.open(id)
			if errors.Is(err, store.ErrHydrating) {
				continue // files of a snapshot are missing: what it is worth shows when it is opened again
			}
			if err != nil {
				w.fail("open %s of %s: %v", id, owner, err)
				continue
			}
			found, err := witness.ReadDisk(owner, id, db, sub.Stores)
			if err != nil {
				w.fail("read %s of %s: %v", id, owner, err)
			}
			if err := db.Close(); err != nil {
				w.fail("close %s of %s: %v", id, owner, err)
			}
			if found != nil {
				w.mu.Lock()
				w.found = append(w.found, found)
				w.mu.Unlock()
			}
		}
	}
}

// settleLimit is how long, in simulated time, an app without further faults may take for everything.
const settleLimit = 3 * time.Minute

// Finish waits until everything is processed, stops the instances and takes the last look.
func (w *World) Finish() *check.Report {
	w.timers.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	settled, err := w.eye.Settle(ctx)
	if err != nil {
		w.note("%v", err)
		w.mu.Lock()
		w.report.Wrongly("%v", err)
		w.mu.Unlock()
	}
	for _, n := range w.Alive() {
		n.Stop()
		w.snapshot(n.client, n.disk)
	}
	for _, n := range w.nodes {
		<-n.done
	}
	last, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err == nil && settled.OK() {
		if err := w.eye.CatchUp(last); err != nil {
			w.fail("%v", err)
		}
		settled = w.eye.Done()
		// A crashed instance may have left a transaction to its time-out.
		if reason, err := w.eye.Quiet(last); err != nil || reason != "" {
			w.fail("after the last instance has stopped: %s %v", reason, err)
		}
	}
	w.report.Add(settled)
	names, err := changelog.NewNames(App, 0)
	if err != nil {
		w.fail("%v", err)
	}
	if w.bucket != nil && err == nil {
		w.found = append(w.found, w.judgeCopies(last, names)...)
	}
	if r, err := witness.CompareDisks(last, w.client, names, w.found); err != nil {
		w.fail("compare: %v", err)
	} else {
		w.report.Add(r)
	}
	return &w.report
}

// Close ends everything. The bubble is empty afterwards.
func (w *World) Close() {
	for _, n := range w.nodes {
		n.cancel()
		<-n.done
	}
	w.timers.Wait()
	w.eye.Close()
	w.load.Close()
	w.broker.Close()
	time.Sleep(10 * time.Second) // clients close their last connections; a bubble's time ends with its first goroutine
}

// Log returns what the instances and the script have said.
func (w *World) Log() string {
	w.buf.mu.Lock()
	defer w.buf.mu.Unlock()
	return w.buf.b.String()
}

// producers returns the ids of the producers of the instances.
func (w *World) producers() map[int64]bool {
	ids, err := w.eye.Producers(context.Background())
	if err != nil {
		w.fail("%v", err)
	}
	return ids
}

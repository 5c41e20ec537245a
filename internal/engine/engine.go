package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/rebalance"
	"github.com/tidemark/tidemark/topology"
)

// Engine runs one topology as one member of an app. It runs once.
type Engine struct {
	cfg   Config
	plan  *topology.Plan
	names changelog.Names
	log   *zap.Logger

	instance    string
	tv2         bool // the broker runs transaction.version 2 or later
	startMoves  bool // the broker moves the start of a log when it compacts
	subs        []*sub
	groups      int             // of connected sub-topologies
	elsewhere   []atomic.Int64  // by group: the lowest watermark of the other instances
	byTopic     map[string]*sub // input topic to its sub-topology
	control     *control
	admin       *kgo.Client
	reader      *changelog.Reader
	source      *source
	balancer    *rebalance.Balancer
	mgr         *manager
	workers     []*worker
	purger      *purger
	snapshotter *snapshotter
	damaged     keys // snapshots this instance has found damaged

	deadLetters sinkTopic
	late        sinkTopic // of records refused for their time
	started     time.Time
	maxBytes    map[string]int // max.message.bytes of the topics that are written

	asked     atomic.Pointer[[]*query.Store]
	hosts     atomic.Pointer[hostMap]
	stateful  atomic.Int64 // tasks with stores that this instance has
	queued    atomic.Int64 // bytes fetched and not yet processed
	processed atomic.Int64 // records processed by this instance
	coarse    atomic.Int64 // wall clock in ms, refreshed by the monitor

	clientMu sync.Mutex // held while a producer's client is made

	randMu sync.Mutex
	rand   *rand.Rand

	waiting  atomic.Bool // another topology is in force
	ready    chan struct{}
	readyOne sync.Once
	failed   chan struct{} // closed when failure is set
	failOne  sync.Once
	failure  error
}

// New checks a topology and a configuration; it does not connect.
func New(plan *topology.Plan, cfg Config) (*Engine, error) {
	cfg.setDefaults()
	names, err := changelog.NewNames(cfg.App, 0)
	if err != nil {
		return nil, fmt.Errorf("tidemark: %w", err)
	}
	e := &Engine{
		cfg: cfg, plan: plan, names: names,
		log:     cfg.Logger.With(zap.String("app", cfg.App)),
		rand:    cfg.Rand,
		ready:   make(chan struct{}),
		failed:  make(chan struct{}),
		started: cfg.Clock.Now(),
	}
	e.describeStores()
	e.source = newSource(e)
	e.mgr = newManager(e)
	e.purger = newPurger(e)
	e.snapshotter = newSnapshotter(e)
	for n := range cfg.Workers {
		e.workers = append(e.workers, newWorker(e, n))
	}
	return e, nil
}

// Ready is closed when every assigned task has begun to run for the first time.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Processed returns the number of input records processed by this instance since it started.
func (e *Engine) Processed() int64 { return e.processed.Load() }

// random returns a number from the engine's source of randomness.
func (e *Engine) random() uint64 {
	e.randMu.Lock()
	defer e.randMu.Unlock()
	return e.rand.Uint64()
}

// coarseMs returns the wall clock, at most a monitor's period old.
func (e *Engine) coarseMs() int64 { return e.coarse.Load() }

// fail ends Run with err, once.
func (e *Engine) fail(err error) {
	e.failOne.Do(func() {
		e.failure = err
		close(e.failed)
	})
}

// Run joins the group and processes until ctx ends or something fails that only a person can mend. On the
// way out it commits what is processed and leaves the group unless membership is static. An abort, a fenced
// producer, a lost lease and a rebalance never end it.
func (e *Engine) Run(ctx context.Context) (err error) {
	defer func() { err = named(err) }()
	instance, former, release, err := e.cfg.LockState(e.cfg.Workers)
	if err != nil {
		return err
	}
	defer release()
	e.instance = instance
	e.log = e.log.With(zap.String("instance", instance))
	e.coarse.Store(e.cfg.Clock.Now().UnixMilli())

	// The control records it writes may be written twice; idempotent ones could not be given up when no broker answers.
	e.admin, err = kgo.NewClient(append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite()}, e.cfg.Client...)...)
	if err != nil {
		return fmt.Errorf("tidemark: client: %w", err)
	}
	defer e.admin.Close()
	e.reader, err = changelog.NewReader(changelog.ReaderConfig{Client: e.cfg.Client, Clock: e.cfg.Clock})
	if err != nil {
		return fmt.Errorf("tidemark: restore client: %w", err)
	}
	defer e.reader.Close()

	e.phase("checking topics")
	if err := e.startUp(ctx); err != nil {
		return unlessDone(ctx, err)
	}

	// The last word: processing and commits go on after ctx has ended, until everything is let go.
	hard, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	e.phase("initialising producers")
	if err := e.initProducers(ctx, former); err != nil {
		e.closeProducers()
		return unlessDone(ctx, err)
	}
	defer e.closeProducers()

	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	for _, w := range e.workers {
		goroutines.Go(func() { w.commitLoop(hard) })
		goroutines.Go(func() { w.run(hard) })
	}
	background, cancelBackground := context.WithCancel(hard)
	defer cancelBackground()
	goroutines.Go(func() { e.monitor(background) })
	goroutines.Go(func() { e.purger.run(background) })
	if e.cfg.Snapshots != nil {
		goroutines.Go(func() { e.snapshotter.run(background) })
	}
	if e.timed() {
		goroutines.Go(func() { e.probe(background) })
		goroutines.Go(func() { e.showWatermarks(background) })
		goroutines.Go(func() { e.align(background) })
	}

	e.phase("joining")
	e.mgr.start(hard)
	if err := e.source.start(e.inputTopics(), e.balancer); err != nil {
		e.stopWorkers(hard)
		return err
	}
	loop, endLoop := context.WithCancel(ctx)
	defer endLoop()
	polled := make(chan error, 1)
	loopEnded := make(chan struct{})
	goroutines.Go(func() {
		defer close(loopEnded)
		polled <- e.source.loop(loop)
	})

	select {
	case <-ctx.Done():
	case <-e.failed:
		err = e.failure
	case err = <-polled:
	}
	endLoop()
	e.phase("stopping")
	e.shutDown(hard, stop, loopEnded)
	if err != nil && !errors.Is(err, context.Canceled) {
		e.log.Error("stopped", zap.Error(err))
		return err
	}
	e.log.Info("stopped")
	return nil
}

// unlessDone returns err, or nil if Run was told to end: an interrupted start is no failure.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// drainLimit bounds how long a stopping instance works on its last commits.
const drainLimit = 30 * time.Second

// leaveLimit bounds how long it tells the group: without a broker the session time-out does that.
const leaveLimit = 5 * time.Second

// shutDown commits what is processed, lets the tasks go and leaves the group.
func (e *Engine) shutDown(hard context.Context, stop context.CancelFunc, loopEnded <-chan struct{}) {
	e.mgr.stop()
	drained := make(chan struct{})
	go func() {
		e.stopWorkers(hard)
		close(drained)
	}()
	select {
	case <-drained:
	case <-e.cfg.Clock.After(drainLimit):
		e.log.Warn("last commits did not finish in time, they are given up", zap.Duration("limit", drainLimit))
		stop()
		for _, t := range e.mgr.snapshot() {
			t.kept.cut()
		}
		<-drained
	}
	e.mgr.wait()
	for _, w := range e.workers {
		w.readMail() // tasks that finished opening meanwhile are released
	}
	e.mgr.wait()
	<-loopEnded // a poll beside the close would hold up the client's last rebalance for ever
	if e.cfg.Static == "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(hard), leaveLimit)
		if err := e.source.client.LeaveGroupContext(ctx); err != nil {
			e.log.Warn("leave the group", zap.Error(err))
		}
		cancel()
	}
	e.source.client.CloseAllowingRebalance()
	// The client's close leaves the group once more, in a goroutine that it does not wait for, and polls a last time:
	// what that poll finds would hold up the goroutine for ever.
	e.source.client.AllowRebalance()
}

func (e *Engine) stopWorkers(context.Context) {
	for _, w := range e.workers {
		w.post(w.stop)
	}
	for _, w := range e.workers {
		<-w.done
	}
}

// initProducers initialises this instance's producers, those of a former run with more workers included:
// whatever that run left open is ended before the instance joins the group.
func (e *Engine) initProducers(ctx context.Context, former int) error {
	if e.cfg.Guarantee == AtLeastOnce {
		for _, w := range e.workers {
			p, err := e.newProducer(ctx, "")
			if err != nil {
				return err
			}
			w.prod.Store(p)
		}
		return nil
	}
	var stale []string
	for n := len(e.workers); n < former; n++ {
		stale = append(stale, e.names.TransactionalID(e.instance, n))
	}
	if len(stale) > 0 {
		if err := changelog.Fence(ctx, e.admin, e.cfg.Clock, stale, e.cfg.TransactionTimeout+20*time.Second); err != nil {
			return fmt.Errorf("tidemark: %w", err)
		}
	}
	errs := make([]error, len(e.workers))
	var wg sync.WaitGroup
	for i, w := range e.workers {
		w.txnID = e.names.TransactionalID(e.instance, i)
		wg.Go(func() {
			// A broker that has just gone may come back; one that is away for longer ends the start.
			start, cancel := context.WithTimeout(ctx, e.cfg.TransactionTimeout+20*time.Second)
			defer cancel()
			p, err := e.obtainProducer(start, w.txnID)
			if err != nil {
				errs[i] = err
				return
			}
			w.prod.Store(p)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Engine) closeProducers() {
	for _, w := range e.workers {
		if p := w.prod.Load(); p != nil {
			p.client.Close()
		}
	}
}

// inputTopics returns every topic the group reads.
func (e *Engine) inputTopics() []string {
	var out []string
	for t := range e.byTopic {
		out = append(out, t)
	}
	return out
}

// becameReady is called when no assigned task is opening any more.
func (e *Engine) becameReady() {
	e.readyOne.Do(func() {
		e.phase("running")
		close(e.ready)
	})
}

func (e *Engine) phase(name string) {
	e.log.Info("instance " + name)
	if f := e.cfg.Events.Phase; f != nil {
		f(PhaseInfo{Phase: name, At: e.cfg.Clock.Now()})
	}
}

// taskFailed ends Run because a task's store cannot be written or read.
func (e *Engine) taskFailed(t *task, err error) {
	e.fail(fmt.Errorf("tidemark: task %s: %w", t, err))
}

package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/processor"
)

// worker is one goroutine with one producer and some tasks. It takes the tasks in turn, at most a slice of
// time each, and seals their writes into a flight at every commit tick. While a flight's transaction is
// ending it goes on processing; what that writes waits in pending until the next transaction can begin.
type worker struct {
	e     *Engine
	n     int
	txnID string
	log   *zap.Logger

	mu     sync.Mutex
	mail   []func() // run by the worker between slices
	bell   chan struct{}
	done   chan struct{}
	flying chan *flight // to the committer
	landed chan landing // from the committer

	// prod is replaced by the worker only; openers read it to look for open transactions.
	prod atomic.Pointer[producer]
	// current is the task that is processing a record, for the monitor.
	current atomic.Pointer[task]

	lows []atomic.Int64 // by group, see align.go
	// moving are the lows without partitions that wait for others, see elsewhere.go.
	moving []atomic.Int64
	ahead  atomic.Bool // a task waits for others to catch up
	// starved: a task holds records back until others have come, as of the last round.
	starved atomic.Bool

	// The rest is the worker's own.
	tasks   []*task
	turn    int // task that goes first in the next round
	pending []*kgo.Record
	slab    []kgo.Record
	headers []kgo.RecordHeader // slab of the headers of records
	flight  *flight
	// uncommitted is the size of all output records of the current generation, in bytes.
	uncommitted int64
	nextTick    time.Time
	shownLows   []int64 // scratch of showLows
	shownMoving []int64
	observeAt   time.Time // when the tasks show their watermarks again
	forced      bool      // commit as soon as no flight is in the air
	limiter     limiter
	sinceCommit int      // records processed in the current generation
	failing     *failed  // policy fail: commit what came before, then end Run
	refused     refusals // of the current generation
	abortCause  string   // the open transaction must be aborted once no flight is in the air
	broken      *brokenTask
	stopping    bool
	revokes     []*revocation
	record      processor.Record // reused for every record
	lastIn      *input           // of the last record processed
	lastOffset  int64
	failures    int       // transactions that failed since the last commit
	notBefore   time.Time // after a failure: when to process again
}

// slice bounds the time a task runs before the next one has its turn.
const slice = time.Millisecond

// revocation is tasks that must be committed and let go.
type revocation struct {
	tasks []*task
	ack   chan struct{}
}

func newWorker(e *Engine, n int) *worker {
	return &worker{
		e: e, n: n,
		log:    e.log.With(zap.Int("worker", n)),
		bell:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		flying: make(chan *flight, 1),
		landed: make(chan landing, 1),
	}
}

// post hands f to the worker's goroutine.
func (w *worker) post(f func()) {
	w.mu.Lock()
	w.mail = append(w.mail, f)
	w.mu.Unlock()
	w.signal()
}

func (w *worker) signal() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// run is the worker's goroutine. It returns when it was told to stop and has let its tasks go, or when ctx,
// the engine's last word, ends.
func (w *worker) run(ctx context.Context) {
	defer close(w.done)
	defer close(w.flying)
	timer := w.e.cfg.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	w.nextTick = w.e.nextTick(w.e.cfg.Clock.Now())
	for ctx.Err() == nil {
		w.readMail()
		select {
		case l := <-w.landed:
			w.land(ctx, l)
		default:
		}
		now := w.e.cfg.Clock.Now()
		if w.flight == nil {
			w.between(ctx, now)
		}
		w.settle(ctx)
		if w.stopping && len(w.tasks) == 0 && w.flight == nil {
			return
		}
		if w.work(ctx, now) {
			// On a single processor whatever sends and receives would wait for the scheduler's next preemption, 10 ms
			// at every step of a commit.
			runtime.Gosched()
			continue
		}
		if w.flight == nil {
			timer.Reset(later(w.nextTick, w.notBefore).Sub(w.e.cfg.Clock.Now()))
		} else {
			timer.Stop() // the landing wakes the worker
		}
		select {
		case <-w.bell:
		case l := <-w.landed:
			w.land(ctx, l)
		case <-timer.C():
		case <-ctx.Done():
		}
	}
	if w.flight != nil {
		// Its committer is on the way out as well; the producer it may have made must be closed.
		if l := <-w.landed; l.prod != nil {
			w.prod.Store(l.prod)
		}
		w.flight = nil
	}
	for _, t := range w.tasks {
		w.release(t) // given up: what is not committed is dropped, the databases are closed all the same
	}
	w.tasks = nil
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// between does what is only possible while no flight is in the air.
func (w *worker) between(ctx context.Context, now time.Time) {
	if w.broken != nil {
		w.repair(ctx)
		return
	}
	if w.abortCause != "" {
		w.abort(ctx, w.abortCause)
		return
	}
	if !now.Before(w.nextTick) {
		w.sweep(ctx, now.UnixMilli())
		w.tick(w.e.steady())
	}
	w.observe(now)
	if w.due(now) {
		w.takeOff(ctx, now)
	}
	if w.failing != nil && w.flight == nil && !w.hasWork() {
		w.fail() // the good prefix is committed
	}
}

// abortSoon takes the open transaction back as soon as no flight is in the air.
func (w *worker) abortSoon(cause string) { w.abortCause = cause }

func (w *worker) readMail() {
	w.mu.Lock()
	mail := w.mail
	w.mail = nil
	w.mu.Unlock()
	for _, f := range mail {
		f()
	}
}

// adopt takes a task that is ready to run. The opener has verified it.
func (w *worker) adopt(t *task) {
	if t.lease.lost() || w.stopping {
		w.release(t)
		return
	}
	if p := w.prod.Load(); p != t.checkedBy {
		// The producer was replaced since the opener looked for its open transactions.
		w.e.mgr.recheck(t, p)
		return
	}
	if err := t.build(); err != nil {
		w.e.fail(err)
		w.release(t)
		return
	}
	t.phase.Store(int32(Running))
	w.tasks = append(w.tasks, t)
	for _, in := range t.inputs {
		round := in.reset(in.position)
		in.committed = in.position
		w.e.source.seek(in, in.position, round)
	}
	t.expose(t.lastW, t.lastTime)
	w.e.mgr.running(t)
}

// due says whether the current generation should be committed now.
func (w *worker) due(now time.Time) bool {
	tick := !now.Before(w.nextTick)
	if tick {
		w.nextTick = w.e.nextTick(now)
	}
	if !w.hasWork() {
		w.forced = false
		return false
	}
	return tick || w.forced || w.overFull() || w.limiter.reached(w.sinceCommit)
}

func (w *worker) hasWork() bool {
	for _, t := range w.tasks {
		if t.dirty {
			return true
		}
	}
	return false
}

// overFull says whether uncommitted state and output have reached the limit. Output that the broker has acknowledged
// takes no memory any more.
func (w *worker) overFull() bool {
	var state int64
	for _, t := range w.tasks {
		state += t.dirtyBytes()
	}
	switch limit := w.e.cfg.OverlayBytes; {
	case state >= limit:
		return true
	case state+w.uncommitted < limit:
		return false
	case w.flight != nil || len(w.pending) > 0:
		return true
	default:
		cl := w.prod.Load().client
		return state+cl.BufferedProduceBytes()+recordCost*cl.BufferedProduceRecords() >= limit
	}
}

// work gives every task a slice and reports whether any record was processed.
func (w *worker) work(ctx context.Context, now time.Time) bool {
	if w.held() || len(w.tasks) == 0 || now.Before(w.notBefore) {
		return false
	}
	if w.flight != nil && (w.overFull() || w.limiter.reached(w.sinceCommit)) {
		return false // the next generation is full; wait for the flight
	}
	worked, starved := false, false
	w.ahead.Store(false)
	w.turn++
	for i := range w.tasks {
		t := w.tasks[(w.turn+i)%len(w.tasks)]
		if TaskState(t.phase.Load()) != Running || t.lease.lost() || t.stalled(w.e) {
			continue
		}
		w.current.Store(t)
		ran := w.runTask(t, now)
		w.current.Store(nil)
		starved = starved || t.holdsBack
		if ran {
			worked = true
			now = w.e.cfg.Clock.Now()
		}
		if w.flight == nil && w.due2(now) || w.held() {
			break
		}
	}
	w.starved.Store(starved)
	w.showLows()
	return worked
}

// held says whether processing waits for something that is only possible between two flights.
func (w *worker) held() bool { return w.failing != nil || w.abortCause != "" || w.broken != nil }

// due2 is due without moving the tick: the main loop does that.
func (w *worker) due2(now time.Time) bool {
	return !now.Before(w.nextTick) || w.forced || w.limiter.reached(w.sinceCommit)
}

// settle lets go of the tasks that were revoked or lost, once nothing of theirs is in the air.
func (w *worker) settle(ctx context.Context) {
	if w.flight != nil {
		return
	}
	for _, t := range w.tasks {
		if t.lease.lost() && t.dirty {
			// Its output is in the open transaction: nothing of that may be committed.
			w.abort(ctx, "lease lost")
			break
		}
	}
	kept := w.tasks[:0]
	for _, t := range w.tasks {
		if t.lease.lost() || TaskState(t.phase.Load()) == Closing && !t.dirty {
			w.release(t)
			continue
		}
		kept = append(kept, t)
	}
	clear(w.tasks[len(kept):])
	w.tasks = kept
	open := w.revokes[:0]
	for _, r := range w.revokes {
		if w.holdsAny(r.tasks) {
			open = append(open, r)
			continue
		}
		close(r.ack)
	}
	w.revokes = open
}

func (w *worker) holdsAny(ts []*task) bool {
	for _, t := range ts {
		for _, u := range w.tasks {
			if t == u {
				return true
			}
		}
	}
	return false
}

// revoke commits tasks and lets them go; ack is closed when that is done or has become impossible.
func (w *worker) revoke(r *revocation) {
	for _, t := range r.tasks {
		if TaskState(t.phase.Load()) == Running {
			t.phase.Store(int32(Closing))
		}
	}
	w.forced = true
	w.revokes = append(w.revokes, r)
}

// stop commits everything and ends the goroutine.
func (w *worker) stop() {
	w.stopping = true
	w.forced = true
	for _, t := range w.tasks {
		t.phase.Store(int32(Closing))
	}
}

// release closes a task's state in the background. What is not committed is dropped, what is committed is
// written down.
func (w *worker) release(t *task) {
	for _, in := range t.inputs {
		in.reset(in.position) // gives back the memory of what is queued
	}
	t.phase.Store(int32(Closed))
	w.e.mgr.release(t)
}

// newRecord returns a record from the worker's slab. Records are handed to the client and never reused.
func (w *worker) newRecord() *kgo.Record {
	if len(w.slab) == 0 {
		w.slab = make([]kgo.Record, 256)
	}
	r := &w.slab[0]
	w.slab = w.slab[1:]
	return r
}

// newHeaders returns room for the headers of one record.
func (w *worker) newHeaders(n int) []kgo.RecordHeader {
	if len(w.headers) < n {
		w.headers = make([]kgo.RecordHeader, max(256, n))
	}
	h := w.headers[:n:n]
	w.headers = w.headers[n:]
	return h
}

// recordCost is the memory an output record takes beside its bytes, in the worker's slab and in the client.
const recordCost = 320

// emit adds a record to the current generation's transaction. It waits in pending while the previous
// generation's transaction is ending.
func (w *worker) emit(r *kgo.Record) {
	w.uncommitted += int64(len(r.Key)+len(r.Value)) + recordCost
	p := w.prod.Load()
	// A begin that fails is tried again at the commit, where a dead producer is replaced.
	if w.flight != nil || len(w.pending) > 0 || p.begin() != nil {
		w.pending = append(w.pending, r)
		return
	}
	p.client.Produce(context.Background(), r, p.promise)
}

// openTransaction begins the current generation's transaction and produces what has been waiting for it.
func (w *worker) openTransaction(ctx context.Context) error {
	p := w.prod.Load()
	if err := p.begin(); err != nil {
		return err
	}
	for i, r := range w.pending {
		p.client.Produce(context.Background(), r, p.promise)
		w.pending[i] = nil
		if i == len(w.pending)/2 {
			w.e.cfg.CrashPoint(K3)
		}
	}
	w.pending = w.pending[:0]
	return nil
}

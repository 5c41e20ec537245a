package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// The commit protocol. The worker carries out steps 1, 2, 6 and 7, the committer steps 3, 4 and 5, so that
// processing goes on while a transaction ends (docs/architecture.md has the steps in prose).
//
//	1  process: state writes stay in the overlay, outputs go out asynchronously
//	2  pre-commit: flush coalesced outputs, encode dirty rows, one changelog record per row, one progress
//	   record per task
//	3  flush; any produce error of the transaction means abort
//	4  read the group metadata, then check every lease, then send the offsets; then EndTxn
//	5  outcome unknown: re-initialise, read the stable offsets, compare {seq, writer}
//	6  promote the overlay of the tasks whose lease is still held
//	7  publish; begin the next generation's transaction
//
// Checking the leases before reading the metadata would be wrong: between the two the partition could be lost
// and the metadata of the new generation, which the broker accepts, be read. An outcome that is not known was
// first taken from a TryAbort that followed a failed commit; it returns nil whatever happened.

// A flight is a sealed generation whose transaction is being ended.
type flight struct {
	prod    *producer
	tasks   []flightTask
	writes  []topicPartition // every partition the worker's tasks write to
	records int
	bytes   int64
	refused refusals
	lastIn  *input // of the last record in it
	lastOff int64
	start   time.Time
}

// flightTask is what a commit means for one task.
type flightTask struct {
	task      *task
	seq       uint64
	positions []int64       // next offset per input
	last      []*kgo.Record // last changelog record per changelog, nil when none was written
	ends      []int64       // acknowledged ends, filled after the flush
	trims     []changelog.Trim
	progress  *changelog.Progress
	told      []watermark.Broadcast // what the task has announced once this is committed
	tally     []processor.Counters
	snapshots *announcement // nil: the progress record says of snapshots what the last one said
}

// outcome is what became of a flight.
type outcome int

const (
	committed outcome = iota
	aborted           // the broker has dropped it, the producer can go on
	noVerdict         // unknown for longer than the bound: the tasks must be opened anew
)

func (o outcome) String() string { return [...]string{"committed", "aborted", "unknown"}[o] }

// landing is what the committer reports.
type landing struct {
	outcome outcome
	cause   string
	refused bool // the transaction failed for what it carried, not for where it was sent
	err     error
	prod    *producer // the incarnation to go on with
}

// takeOff is step 2: it seals the current generation and hands it to the committer.
func (w *worker) takeOff(ctx context.Context, now time.Time) {
	for _, t := range w.tasks {
		if t.dirty && t.lease.lost() {
			return // settle aborts
		}
	}
	w.forced = false
	nowMs := now.UnixMilli()
	f := &flight{start: now, records: w.sinceCommit, lastIn: w.lastIn, lastOff: w.lastOffset}
	prod := w.prod.Load()
	for _, t := range w.tasks {
		if !t.dirty {
			continue
		}
		if t.first {
			w.e.cfg.CrashPoint(K0)
		}
		ft, err := w.seal(t, prod.writer, nowMs)
		if storeFailure(err) {
			w.broken = &brokenTask{t, err}
			return
		}
		if err != nil {
			w.log.Warn("commit refused by the task", zap.Stringer("task", t.id), zap.Error(err))
			w.narrow(f, err)
			w.abort(ctx, "refused")
			return
		}
		f.tasks = append(f.tasks, ft)
	}
	w.announce(f, nowMs)
	if err := w.openTransaction(ctx); err != nil {
		w.cannotBegin(ctx, err)
		return
	}
	for _, t := range w.tasks {
		f.writes = append(f.writes, t.writes()...)
	}
	f.prod, f.bytes, f.refused = prod, w.uncommitted, w.refused
	w.refused = nil
	w.flight = f
	w.uncommitted, w.sinceCommit = 0, 0
	prod.begun = false
	for i := range f.tasks {
		f.tasks[i].task.dirty = false
	}
	w.flying <- f
}

// seal encodes what a task has changed since the last commit.
func (w *worker) seal(t *task, writer uint64, nowMs int64) (flightTask, error) {
	ft := flightTask{task: t, seq: t.seq + 1, last: make([]*kgo.Record, len(t.sub.changelogs))}
	t.out.input = nil
	var written int64
	if t.state != nil {
		written = t.state.Dirty()
	}
	output := w.uncommitted
	if t.sub.Timed {
		if err := t.proc.Tick(w.e.steady()); err != nil {
			return ft, err
		}
	}
	if err := t.proc.Flush(); err != nil {
		return ft, err
	}
	var err error
	high := slices.Repeat([]int64{noGroup}, len(t.sub.changelogs))
	if t.state != nil {
		err = t.state.Seal(func(c store.Change) error {
			cl := t.sub.changelogOf[c.Store]
			if cl < 0 {
				return nil
			}
			topic := &t.sub.changelogs[cl]
			if n := len(c.Key) + len(c.Value) + len(c.Header) + recordOverhead; n > topic.maxBytes {
				return fmt.Errorf("row of %d bytes in store %s, changelog %s has max.message.bytes %d", n, t.sub.Stores[c.Store].ID, topic.name, topic.maxBytes)
			}
			r := w.newRecord()
			r.Topic, r.Partition, r.Key, r.Value = topic.name, t.id.Partition, c.Key, c.Value
			r.Timestamp = time.UnixMilli(c.Time)
			if c.Header != nil {
				r.Headers = w.stateHeader(c.Header)
			}
			ft.last[cl] = r
			high[cl] = max(high[cl], c.Group)
			t.kept.changed += int64(len(c.Key) + len(c.Value))
			w.emit(r)
			return nil
		})
	}
	if err != nil {
		return ft, err
	}
	if t.state != nil {
		t.grown(written, w.uncommitted-output+t.state.Dirty())
	}
	p := t.progress(writer, nowMs)
	if t.state != nil {
		ft.trims = t.nextTrims(high)
		t.sub.setTrims(p, ft.trims)
	}
	if ft.snapshots, err = t.references(w.e, p, time.UnixMilli(nowMs)); err != nil {
		return ft, err
	}
	value, err := p.Append(nil)
	if err != nil {
		return ft, err
	}
	w.emit(&kgo.Record{Topic: t.sub.progress, Partition: t.id.Partition, Key: []byte(changelog.ProgressKey), Value: value, Timestamp: time.UnixMilli(nowMs)})
	ft.progress = p
	if t.sub.Timed {
		ft.tally = t.tally()
	}
	for _, in := range t.inputs {
		ft.positions = append(ft.positions, in.position)
	}
	return ft, nil
}

// land is steps 6 and 7, or the way back.
func (w *worker) land(ctx context.Context, l landing) {
	f := w.flight
	w.flight = nil
	if l.prod != nil {
		w.prod.Store(l.prod)
	}
	f.prod.opened.Store(0)
	m := w.e.cfg.Metrics
	m.transactions.WithLabelValues(l.outcome.String()).Inc()
	m.commitSeconds.Observe(w.e.cfg.Clock.Now().Sub(f.start).Seconds())
	if l.outcome != committed {
		w.log.Info("transaction "+l.outcome.String(), zap.String("cause", l.cause), zap.Error(l.err))
		if l.refused {
			w.narrow(f, l.err)
		}
		m.aborts.WithLabelValues(l.cause).Inc()
		if l.outcome == noVerdict {
			w.reopen(ctx, f)
		}
		w.rollback(ctx)
		return
	}
	w.limiter.committed()
	w.failures, w.notBefore = 0, time.Time{}
	f.refused.count(m)
	w.e.cfg.CrashPoint(K7)
	nowMs := w.e.cfg.Clock.Now().UnixMilli()
	for _, ft := range f.tasks {
		t := ft.task
		if t.lease.lost() {
			continue // the next owner may be ahead already: settle drops the overlay
		}
		w.apply(t, ft, nowMs)
	}
	if w.e.cfg.Events.Commit != nil {
		w.e.cfg.Events.Commit(CommitInfo{Worker: w.n, Tasks: len(f.tasks), Records: f.records, Bytes: f.bytes, Took: w.e.cfg.Clock.Now().Sub(f.start)})
	}
	if w.failing != nil && !w.hasWork() {
		w.fail()
		return
	}
	if len(w.pending) > 0 {
		if err := w.openTransaction(ctx); err != nil {
			w.cannotBegin(ctx, err)
		}
	}
	if now := w.e.cfg.Clock.Now(); !now.Before(w.nextTick) {
		// A tick that has passed meanwhile is left out. What has waited is being sent only now, beside the processing;
		// sealed at once, all of it would be sent by the next flush, every flight would take as long as that, and what
		// waits for it would fill the memory.
		w.nextTick = w.e.nextTick(now)
	}
}

// apply is step 6 for one task: the overlay becomes part of the committed layer, together with the progress.
func (w *worker) apply(t *task, ft flightTask, nowMs int64) {
	p := *ft.progress
	p.Ends = nil
	for i, c := range t.sub.changelogs {
		p.Ends = append(p.Ends, changelog.StoreEnd{Store: t.sub.Stores[c.store].ID, End: ft.ends[i]})
	}
	blob, err := p.Append(nil)
	if err == nil && t.state != nil {
		err = t.state.Commit(blob, nowMs)
	}
	t.sealed = 0
	if err != nil {
		w.e.taskFailed(t, err)
		return
	}
	t.seq, t.ends, t.trims, t.first = ft.seq, ft.ends, ft.trims, false
	t.clocks = p.Section(changelog.SectionClocks)
	if ft.told != nil {
		t.told = ft.told
	}
	if ft.tally != nil {
		w.e.cfg.Metrics.count(t.proc.Operators(), ft.tally)
	}
	t.lastSeq.Store(t.seq)
	for i, in := range t.inputs {
		in.committed = ft.positions[i]
		in.reported.Store(in.committed)
	}
	t.expose(p.W, p.Time) // step 7
	w.e.purger.committed(t)
	t.publish(w.e, ft.snapshots)
	if err := w.persist(t, nowMs); err != nil {
		w.broken = &brokenTask{t, err}
	}
}

// abort ends the current generation's transaction without a trace and goes back to the last commit. It is
// called with no flight in the air.
func (w *worker) abort(ctx context.Context, cause string) {
	w.log.Info("transaction aborted", zap.String("cause", cause))
	w.e.cfg.Metrics.transactions.WithLabelValues(aborted.String()).Inc()
	w.e.cfg.Metrics.aborts.WithLabelValues(cause).Inc()
	p := w.prod.Load()
	if p.begun {
		p.begun = false
		p.opened.Store(0)
		if np, err := w.e.endAborted(ctx, p, w.writes()); err != nil {
			w.e.fail(err)
			return
		} else if np != p {
			w.prod.Store(np)
		}
	}
	w.rollback(ctx)
}

// endAborted aborts the open transaction of a producer. A producer that cannot do that is replaced.
func (e *Engine) endAborted(ctx context.Context, p *producer, writes []topicPartition) (*producer, error) {
	err := p.client.AbortBufferedRecords(ctx)
	if p.txnID == "" {
		p.produceError()
		return p, nil
	}
	if err == nil {
		p.indefinite.Store(false)
		err = p.client.EndTransaction(ctx, kgo.TryAbort)
	}
	if err == nil && (e.tv2 || !p.indefinite.Load()) && !p.disowned.Load() {
		p.produceError()
		return p, nil
	}
	return e.replace(ctx, p, writes)
}

// replace makes a new incarnation of a producer and looks whether the broker has forgotten a marker of the
// old one before anything is produced.
func (e *Engine) replace(ctx context.Context, p *producer, writes []topicPartition) (*producer, error) {
	np, err := e.rebuildProducer(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := e.awaitNoOpen(ctx, np, writes); err != nil {
		np.client.Close()
		return nil, err
	}
	return np, nil
}

// rollback drops everything uncommitted of the worker's tasks and rewinds their inputs.
func (w *worker) rollback(ctx context.Context) {
	w.pending = w.pending[:0]
	w.uncommitted, w.sinceCommit = 0, 0
	w.forced = false
	w.abortCause = ""
	w.refused = nil
	// The first failure of a row costs nothing; while the cause lasts, the same records would otherwise be
	// processed and aborted without a pause.
	if w.failures++; w.failures > 1 {
		w.notBefore = w.e.cfg.Clock.Now().Add(min(w.e.cfg.CommitInterval<<min(w.failures-2, 10), time.Second))
	}
	for _, t := range w.tasks {
		if t.proc != nil {
			if err := t.proc.Pause(); err != nil {
				w.log.Warn("scan of the state", zap.Stringer("task", t.id), zap.Error(err))
			}
		}
		if t.state != nil {
			t.state.Rollback()
		}
		t.dirty, t.sealed = false, 0
		if t.lease.lost() {
			continue
		}
		if err := t.build(); err != nil {
			w.e.fail(err)
			return
		}
		for _, in := range t.inputs {
			w.e.source.seek(in, in.committed, in.reset(in.committed))
		}
	}
	w.failing = nil // met again after the good prefix
}

// narrow notes that a transaction was refused for what it carried: the next ones get smaller, down to a single
// record, which then is the one behind it and goes to its policy.
func (w *worker) narrow(f *flight, err error) {
	w.limiter.refused(f.records)
	if f.records != 1 || f.lastIn == nil {
		return
	}
	t := f.lastIn.task
	if t.poison == nil {
		t.poison = make(map[topicPartition]poisoned)
	}
	t.poison[topicPartition{f.lastIn.topic, f.lastIn.partition}] = poisoned{f.lastOff, &RecordError{
		Topic: f.lastIn.topic, Partition: f.lastIn.partition, Offset: f.lastOff, Stage: "commit", Err: err,
	}}
}

// cannotBegin replaces a producer that cannot begin a transaction: it was fenced, or its id has expired.
func (w *worker) cannotBegin(ctx context.Context, err error) {
	w.log.Info("transaction cannot begin", zap.Error(err))
	w.e.cfg.Metrics.aborts.WithLabelValues("begin").Inc()
	np, err := w.e.replace(ctx, w.prod.Load(), w.writes())
	if err != nil {
		w.e.fail(err)
		return
	}
	w.prod.Store(np)
	w.rollback(ctx)
}

// reopen gives tasks whose last commit has no verdict back to the manager: stable fetch, restore, verify.
func (w *worker) reopen(ctx context.Context, f *flight) {
	for _, ft := range f.tasks {
		t := ft.task
		w.forget(t)
		w.e.mgr.reopen(t)
	}
}

// writes returns every partition the worker's tasks write to.
func (w *worker) writes() []topicPartition {
	var out []topicPartition
	for _, t := range w.tasks {
		out = append(out, t.writes()...)
	}
	return out
}

// commitLoop is the committer's goroutine: one flight at a time.
func (w *worker) commitLoop(ctx context.Context) {
	for f := range w.flying {
		w.landed <- w.e.commit(ctx, f)
	}
}

// commit carries out steps 3 to 5.
func (e *Engine) commit(ctx context.Context, f *flight) landing {
	if e.cfg.Guarantee == AtLeastOnce {
		return e.commitOffsets(ctx, f)
	}
	// Step 3.
	if err := f.prod.client.Flush(ctx); err != nil {
		return e.giveUp(ctx, f, "flush", err, false)
	}
	if r, err := f.prod.produceError(); err != nil {
		if r != nil {
			err = fmt.Errorf("produce to %s/%d: %w", r.Topic, r.Partition, err)
		}
		e.failIfNotAuthorized(err)
		return e.giveUp(ctx, f, "produce", err, refusedContent(err))
	}
	e.cfg.CrashPoint(K4)
	// Step 4.
	f.acknowledged()
	f.prod.indefinite.Store(false)
	if cause, err := e.sendOffsets(ctx, f); err != nil {
		e.failIfNotAuthorized(err)
		return e.giveUp(ctx, f, cause, err, false)
	}
	e.cfg.CrashPoint(K5)
	err := f.prod.client.EndTransaction(ctx, kgo.TryCommit)
	e.cfg.CrashPoint(K6)
	if err == nil && (e.tv2 || !f.prod.indefinite.Load()) {
		return landing{outcome: committed, prod: f.prod}
	}
	// Step 5.
	return e.resolve(ctx, f, err)
}

// failIfNotAuthorized ends Run for a commit that no repetition would make possible.
func (e *Engine) failIfNotAuthorized(err error) {
	if notAuthorized(err) {
		e.fail(err)
	}
}

// refusedContent says whether a produce error is about what was produced.
func refusedContent(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.InvalidTimestamp) ||
		errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.RecordListTooLarge)
}

// acknowledged fills in the changelog ends of the flight: records of one partition are acknowledged in
// order, so the last one has the highest offset.
func (f *flight) acknowledged() {
	for i := range f.tasks {
		ft := &f.tasks[i]
		ft.ends = append([]int64(nil), ft.task.ends...)
		for c, r := range ft.last {
			if r != nil {
				ft.ends[c] = r.Offset + 1
			}
		}
		ft.last = nil
	}
}

// offsets returns what the flight commits.
func (f *flight) offsets() ([]offsetCommit, error) {
	var out []offsetCommit
	for _, ft := range f.tasks {
		md, err := changelog.Metadata{Seq: ft.seq, Writer: f.prod.writer, W: ft.progress.W, Ends: ft.ends}.Text()
		if err != nil {
			return nil, err
		}
		for i, in := range ft.task.inputs {
			out = append(out, offsetCommit{
				topic: in.topic, topicID: ft.task.sub.topicIDs[in.topic], partition: in.partition,
				offset: ft.positions[i], metadata: md,
			})
		}
	}
	return out, nil
}

// lost reports a task of the flight that a member may not commit: its lease is gone, or is another member's.
func (f *flight) lost(member string) *task {
	for _, ft := range f.tasks {
		if ft.task.lease.lost() || member != "" && ft.task.lease.member != member {
			return ft.task
		}
	}
	return nil
}

var errLeaseLost = errors.New("lease lost")

// sendOffsets is the first half of step 4. The order matters: metadata, leases, offsets.
func (e *Engine) sendOffsets(ctx context.Context, f *flight) (cause string, err error) {
	commits, err := f.offsets()
	if err != nil {
		return "metadata", err
	}
	member, generation, ok := e.source.metadata()
	for second := false; ; second = true {
		e.cfg.CrashPoint(K4b)
		if t := f.lost(member); t != nil {
			return "lease lost", fmt.Errorf("task %s: %w", t, errLeaseLost)
		}
		if !ok {
			return "not a member", errors.New("the instance is not in the group")
		}
		err := e.txnOffsetCommit(ctx, f.prod, member, generation, commits)
		if err == nil {
			return "", nil
		}
		if second || !errors.Is(err, kerr.IllegalGeneration) {
			return "offsets", err
		}
		// A rebalance has begun since; the partitions are still ours. Its end brings the new generation.
		member, generation, ok = e.awaitGeneration(ctx, f, generation)
	}
}

// awaitGeneration waits until the generation is no longer the given one, a lease is lost, or the session
// time-out has passed.
func (e *Engine) awaitGeneration(ctx context.Context, f *flight, old int32) (string, int32, bool) {
	deadline := e.cfg.Clock.Now().Add(e.cfg.SessionTimeout)
	for {
		member, generation, ok := e.source.metadata()
		if ok && generation != old || f.lost(member) != nil || e.cfg.Clock.Now().After(deadline) {
			return member, generation, ok
		}
		select {
		case <-ctx.Done():
			return member, generation, false
		case <-e.cfg.Clock.After(5 * time.Millisecond):
		}
	}
}

// giveUp aborts a flight before EndTxn was sent.
func (e *Engine) giveUp(ctx context.Context, f *flight, cause string, err error, refused bool) landing {
	p, aerr := e.endAborted(ctx, f.prod, f.writes)
	if aerr != nil {
		return landing{outcome: aborted, cause: cause, err: errors.Join(err, aerr)}
	}
	return landing{outcome: aborted, cause: cause, err: err, refused: refused, prod: p}
}

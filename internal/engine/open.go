package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
)

// A task opens in these steps, the order of which carries the guarantee:
//
//	1  fence the transactional ids of instances that have left the group
//	2  fetch the committed offsets of all inputs, stable: pending commits of the former owner come first
//	3  read the high watermarks of the progress and changelog partitions
//	4  read the last progress record and replay the changelogs up to those marks
//	5  verify: {seq, writer} and the changelog ends of the offset metadata against what was read
//	6  look for open transactions of this producer on everything the task writes
//
// Restoring up to the last stable offset seen at the start, or with marks noted before step 2, would miss the
// former owner's last commit.

// mismatch is a verification that failed. It may be the sight of an instance whose session has ended, so the
// task opens again at step 2 before anybody is told.
type mismatch struct{ err error }

func (m *mismatch) Error() string { return m.err.Error() }
func (m *mismatch) Unwrap() error { return m.err }

// openTask opens a task, again and again while the reason may pass by itself.
func (e *Engine) openTask(ctx context.Context, t *task) error {
	start := e.cfg.Clock.Now()
	e.taskEvent(t, Opening)
	backoff := 10 * time.Millisecond
	var since time.Time // first of the mismatches in a row
	failures := 0       // of the local database, in a row
	for {
		err := e.openOnce(ctx, t)
		if err == nil {
			e.cfg.Metrics.openSeconds.Observe(e.cfg.Clock.Now().Sub(start).Seconds())
			return nil
		}
		e.discard(t)
		if ctx.Err() != nil || t.lease.lost() {
			return ctx.Err()
		}
		var mm *mismatch
		var le *localError
		switch {
		case errors.As(err, &mm):
			if since.IsZero() {
				since = e.cfg.Clock.Now()
			}
			_, _, member := e.source.metadata()
			lasts := e.cfg.Clock.Now().Sub(since)
			if member && lasts > 2*e.cfg.SessionTimeout/3 {
				return fmt.Errorf("tidemark: task %s: %w", t, mm.err)
			}
			t.waited = member && lasts > e.cfg.SessionTimeout/3
			e.log.Info("task does not verify yet", zap.Stringer("task", t.id), zap.Error(err))
		case fatalOpen(err):
			return fmt.Errorf("tidemark: task %s: %w", t, err)
		case errors.As(err, &le):
			// A lock may be released, a full disk cleared; anything else is the same next time.
			if failures++; failures > maxLocalFailures {
				return fmt.Errorf("tidemark: task %s: %w", t, err)
			}
			e.log.Warn("task opens again", zap.Stringer("task", t.id), zap.Error(err))
		default:
			since, failures = time.Time{}, 0
			e.log.Warn("task opens again", zap.Stringer("task", t.id), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.cfg.Clock.After(backoff):
			backoff = min(2*backoff, time.Second)
		}
	}
}

// maxLocalFailures is how often a task tries a database that refuses, with pauses of up to a second.
const maxLocalFailures = 20

// fatalOpen says whether only a person can mend the error.
func fatalOpen(err error) bool {
	for _, f := range []error{ErrForeignState, ErrChangelogLost, ErrChangelogTruncated, ErrTopicRecreated, ErrTopicMissing,
		ErrSourceOffsetLost, ErrStateDirLocked} {
		if errors.Is(err, f) {
			return true
		}
	}
	return notAuthorized(err)
}

// discard closes what a failed attempt has opened.
func (e *Engine) discard(t *task) {
	if t.state != nil {
		t.state.Rollback()
		t.base = nil
		if err := t.state.Close(); err != nil {
			e.log.Warn("close store", zap.Stringer("task", t.id), zap.Error(err))
		}
		t.state, t.db = nil, nil
	}
	if t.db != nil {
		if err := t.db.Close(); err != nil {
			e.log.Warn("close store", zap.Stringer("task", t.id), zap.Error(err))
		}
		t.db = nil
	}
}

// sight is what the group and the logs say about a task.
type sight struct {
	committed bool // the group has an offset for some input
	offsets   map[changelog.TopicPartition]changelog.Committed
	meta      changelog.Metadata
	metaErr   error
	hasMeta   bool
	bounds    map[changelog.TopicPartition]changelog.Bounds
	progress  *changelog.Progress
}

func (e *Engine) openOnce(ctx context.Context, t *task) error {
	if err := e.fenceDead(ctx); err != nil {
		return err
	}
	s, err := e.look(ctx, t)
	if err != nil {
		return err
	}
	if s.progress == nil && !s.committed {
		if err := e.firstStart(ctx, t, s); err != nil {
			return err
		}
	} else if err := e.takeOver(ctx, t, s); err != nil {
		return err
	}
	p := t.worker.prod.Load()
	if err := e.awaitNoOpen(ctx, p, t.writes()); err != nil {
		return err
	}
	t.checkedBy = p
	for _, in := range t.inputs {
		in.committed = in.position
		in.reported.Store(in.position)
	}
	t.lastSeq.Store(t.seq)
	return nil
}

// fenceDead is step 1. Openers take turns: none may go on before the others' fencing is done.
func (e *Engine) fenceDead(ctx context.Context) error {
	select {
	case e.mgr.fence <- struct{}{}:
		defer func() { <-e.mgr.fence }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ids := e.mgr.takeDead()
	if len(ids) == 0 || e.cfg.Guarantee == AtLeastOnce {
		return nil
	}
	e.log.Info("fencing instances that have left", zap.Strings("ids", ids))
	if err := changelog.Fence(ctx, e.admin, e.cfg.Clock, ids, e.cfg.TransactionTimeout+20*time.Second); err != nil {
		// Only time is lost: the broker ends their transactions at the time-out.
		e.log.Warn("fence", zap.Error(err))
	}
	return nil
}

// fenceStrangers ends open transactions of this app's instances that are not in the group: an instance that
// has just started has no earlier host map to compare with.
func (e *Engine) fenceStrangers(ctx context.Context) error {
	txns, err := changelog.ListTransactions(ctx, e.admin, e.names)
	if err != nil {
		return err
	}
	var ids []string
	for _, x := range txns {
		instance, _, ok := e.names.ParseTransactionalID(x.ID)
		if ok && x.State == "Ongoing" && instance != e.instance && !e.mgr.listed(instance) {
			ids = append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	e.log.Info("fencing instances that are not in the group", zap.Strings("ids", ids))
	return changelog.Fence(ctx, e.admin, e.cfg.Clock, ids, e.cfg.TransactionTimeout+20*time.Second)
}

// look is steps 2, 3 and the first half of 4.
func (e *Engine) look(ctx context.Context, t *task) (*sight, error) {
	s := &sight{}
	var inputs []changelog.TopicPartition
	for _, in := range t.inputs {
		inputs = append(inputs, changelog.TopicPartition{Topic: in.topic, Partition: in.partition})
	}
	var err error
	s.offsets, err = changelog.StableOffsets(ctx, e.admin, e.cfg.Clock, e.cfg.App, inputs, 100*time.Millisecond)
	if errors.Is(err, changelog.ErrUnstable) {
		if err := e.fenceStrangers(ctx); err != nil {
			e.log.Warn("fence", zap.Error(err))
		}
		s.offsets, err = changelog.StableOffsets(ctx, e.admin, e.cfg.Clock, e.cfg.App, inputs, e.cfg.TransactionTimeout+20*time.Second)
	}
	if err != nil {
		return nil, err
	}
	for _, tp := range inputs {
		c := s.offsets[tp]
		if !c.Found {
			continue
		}
		s.committed = true
		md, ok, err := changelog.ParseMetadata(c.Metadata)
		switch {
		case err != nil:
			s.metaErr = fmt.Errorf("%s/%d: %w", tp.Topic, tp.Partition, err)
		case !ok:
			s.metaErr = fmt.Errorf("%s/%d: offset %d was committed without metadata of this app", tp.Topic, tp.Partition, c.Offset)
		case s.hasMeta && (md.Seq != s.meta.Seq || md.Writer != s.meta.Writer):
			s.metaErr = fmt.Errorf("%s/%d: offsets of one task are of different commits (%d and %d)", tp.Topic, tp.Partition, s.meta.Seq, md.Seq)
		default:
			s.meta, s.hasMeta = md, true
		}
	}
	logs := append([]changelog.TopicPartition{}, inputs...)
	progress := changelog.TopicPartition{Topic: t.sub.progress, Partition: t.id.Partition}
	logs = append(logs, progress)
	for _, c := range t.sub.changelogs {
		logs = append(logs, changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition})
	}
	if s.bounds, err = changelog.ListBounds(ctx, e.admin, logs); err != nil {
		return nil, err
	}
	for i, tp := range inputs {
		t.inputs[i].end.Store(s.bounds[tp].LastStable)
	}
	if hw := s.bounds[progress].HighWatermark; hw > 0 {
		tail, err := e.reader.ReadTail(ctx, progress.Topic, progress.Partition, hw)
		if err != nil {
			return nil, err
		}
		s.progress = tail.Record
	}
	return s, nil
}

// firstStart opens a task that has never committed: no offset, no progress, and changelogs without a
// committed record.
func (e *Engine) firstStart(ctx context.Context, t *task, s *sight) error {
	parts := t.changelogs(s, nil)
	records := 0
	if _, err := e.reader.Read(ctx, parts, func(int, *kgo.Record) error { records++; return nil }, func(int, int64, int64) {}); err != nil {
		return e.restoreError(err)
	}
	if records > 0 {
		return fmt.Errorf("%w: its changelogs hold records, but neither the group %s nor %s has a commit of it; run: tidemark reset --app %s",
			ErrForeignState, e.cfg.App, t.sub.progress, e.cfg.App)
	}
	if err := e.openFresh(t); err != nil {
		return err
	}
	t.ends = make([]int64, len(parts))
	for i, p := range parts {
		t.ends[i] = p.Target
	}
	t.seq, t.first = 0, true
	t.kept.begun = e.cfg.Clock.Now()
	for _, in := range t.inputs {
		b := s.bounds[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]
		in.position = b.Start
		if e.cfg.StartAt == Latest {
			in.position = b.LastStable
		}
	}
	return nil
}

// takeOver opens a task with a history.
func (e *Engine) takeOver(ctx context.Context, t *task, s *sight) error {
	if s.progress == nil {
		return fmt.Errorf("%w: group %s has offsets of %s, but %s has no progress record; run: tidemark reset --app %s",
			ErrForeignState, e.cfg.App, t, t.sub.progress, e.cfg.App)
	}
	p := s.progress
	for _, in := range t.inputs {
		if id, ok := p.TopicID(in.topic); ok && id != t.sub.topicIDs[in.topic] {
			return fmt.Errorf("%w: %s had id %s, has %s; run: tidemark reset --app %s", ErrTopicRecreated, in.topic,
				changelog.FormatTopicID(id), changelog.FormatTopicID(t.sub.topicIDs[in.topic]), e.cfg.App)
		}
	}
	if err := e.verifyOffsets(t, s); err != nil {
		if e.cfg.Guarantee == ExactlyOnce && e.cfg.OnOffsets != Resume && !(t.waited && s.behind()) {
			return &mismatch{err}
		}
		e.log.Warn("group offsets differ from the last commit, going on from the progress record", zap.Stringer("task", t.id), zap.Error(err))
	}
	t.inheritSnapshots(e, p)
	positions, err := e.restore(ctx, t, s)
	if err != nil {
		return err
	}
	// Step 5, second half: the ends that the commit was acknowledged with.
	if s.hasMeta && s.meta.Seq == p.Seq {
		for i, end := range s.meta.Ends {
			if i < len(positions) && positions[i] < end {
				return &mismatch{fmt.Errorf("%w: changelog %s was read to %d, the last commit wrote to %d",
					ErrChangelogTruncated, t.sub.changelogs[i].name, positions[i], end)}
			}
		}
	}
	t.seq, t.ends, t.clocks = p.Seq, positions, p.Section(changelog.SectionClocks)
	t.lastW, t.lastTime = p.W, p.Time
	for _, in := range t.inputs {
		b := s.bounds[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]
		off, ok := p.Offset(in.topic, in.partition)
		if ok && e.cfg.Guarantee == AtLeastOnce {
			off, ok = s.sentTo(changelog.TopicPartition{Topic: in.topic, Partition: in.partition}, off)
		}
		switch {
		case !ok: // an input the earlier topology did not have
			if in.position = b.Start; e.cfg.StartAt == Latest {
				in.position = b.LastStable
			}
		case off < b.Start:
			return fmt.Errorf("%w: %s/%d is committed to %d, its log begins at %d; raise the retention, or run tidemark reset --app %s",
				ErrSourceOffsetLost, in.topic, in.partition, off, b.Start, e.cfg.App)
		case off > b.HighWatermark:
			// A leader that has just taken over may not know its high watermark yet.
			return &mismatch{fmt.Errorf("%w: %s/%d is committed to %d, its log ends at %d; run tidemark reset --app %s",
				ErrDataLoss, in.topic, in.partition, off, b.HighWatermark, e.cfg.App)}
		default:
			in.position = off
		}
	}
	return nil
}

// behind says whether the group's offsets are those of an earlier commit of the task than its progress record. One
// transaction has carried both, so if that stays, the coordinator answers with an older state than its log holds (see
// verdict), and the progress record is right: what the former owner had on its way to the broker when the marks were read
// has been waited for there too, and its member can send nothing more.
func (s *sight) behind() bool {
	return s.progress != nil && s.hasMeta && s.metaErr == nil && s.meta.Seq < s.progress.Seq
}

// verifyOffsets is the first half of step 5: the group's offsets must be those of the progress record.
func (e *Engine) verifyOffsets(t *task, s *sight) error {
	p := s.progress
	advice := fmt.Sprintf("to go on from the progress record set OnOffsetsChanged to Resume, to start over run: tidemark reset --app %s", e.cfg.App)
	if s.metaErr != nil {
		return fmt.Errorf("%w: %w; %s", ErrOffsetsChanged, s.metaErr, advice)
	}
	if !s.hasMeta {
		return fmt.Errorf("%w: group %s has no offsets of %s, the last commit was number %d; %s", ErrOffsetsChanged, e.cfg.App, t, p.Seq, advice)
	}
	for _, in := range t.inputs {
		want, ok := p.Offset(in.topic, in.partition)
		c := s.offsets[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]
		if ok && (!c.Found || c.Offset != want) {
			return fmt.Errorf("%w: %s/%d is at %d, the last commit left it at %d; %s", ErrOffsetsChanged, in.topic, in.partition, c.Offset, want, advice)
		}
	}
	if s.meta.Seq != p.Seq || s.meta.Writer != p.Writer {
		return fmt.Errorf("%w: offsets are of commit %d, the progress record of commit %d; %s", ErrOffsetsChanged, s.meta.Seq, p.Seq, advice)
	}
	return nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/store"
)

// changelogs returns what a restore has to read. from gives the position per changelog; nil means from the
// start of the logs.
func (t *task) changelogs(s *sight, from []int64) []changelog.Partition {
	parts := make([]changelog.Partition, len(t.sub.changelogs))
	for i, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		parts[i] = changelog.Partition{Topic: c.name, Partition: t.id.Partition, From: b.Start, Target: b.HighWatermark}
		if from != nil {
			parts[i].From = from[i]
		}
	}
	return parts
}

// openFresh opens an empty database for the task.
func (e *Engine) openFresh(t *task) error {
	if len(t.sub.Stores) == 0 {
		return nil
	}
	err := e.openDB(t)
	if errors.Is(err, store.ErrHydrating) {
		err = e.startEmpty(t)
	}
	if err != nil {
		return err
	}
	if blob, err := store.ReadProgress(t.db); err != nil || blob != nil {
		if err := e.wipe(t, "the app has no commit of the task, the directory has"); err != nil {
			return err
		}
	}
	return e.openState(t)
}

func (e *Engine) openDB(t *task) error {
	db, err := e.cfg.OpenStore(t.id)
	if errors.Is(err, store.ErrCorrupt) {
		e.log.Error("database is damaged and set aside, the task is restored from its changelogs", zap.Stringer("task", t.id), zap.Error(err))
		e.cfg.Metrics.corruptions.Inc()
		if err := e.cfg.SetAside(t.id); err != nil {
			return err
		}
		db, err = e.cfg.OpenStore(t.id)
	}
	if err != nil {
		return &localError{err}
	}
	t.db = db
	return nil
}

// startEmpty replaces the database of a task, which is closed, by an empty one.
func (e *Engine) startEmpty(t *task) error {
	t.kept.lazy.Store(nil)
	if err := e.cfg.Wipe(t.id); err != nil {
		return &localError{err}
	}
	return e.openDB(t)
}

// replaceDamaged sets an open database aside whose damage showed when it was read, and opens an empty one.
func (e *Engine) replaceDamaged(t *task, cause error) error {
	e.log.Error("database is damaged and set aside, the task is restored from its changelogs", zap.Stringer("task", t.id), zap.Error(cause))
	e.cfg.Metrics.corruptions.Inc()
	if err := t.db.Close(); err != nil {
		e.log.Warn("close store", zap.Stringer("task", t.id), zap.Error(err))
	}
	t.db = nil
	t.kept.lazy.Store(nil)
	if err := e.cfg.SetAside(t.id); err != nil {
		return &localError{err}
	}
	return e.openDB(t)
}

// localError is a failure of the task's database: unlike the broker's it does not pass by waiting long.
type localError struct{ err error }

func (l *localError) Error() string { return l.err.Error() }
func (l *localError) Unwrap() error { return l.err }

func (e *Engine) openState(t *task) error {
	st, err := store.Open(t.db, t.sub.Stores, e.share())
	if err != nil {
		return &localError{err}
	}
	t.state, t.base, t.db = st, t.db, nil
	t.kept.memo = new(snapshot.Memo)
	if s := e.cfg.Snapshots; s != nil {
		db := t.base
		settle := func() { s.Dir.Settle(db) }
		t.kept.settle.Store(&settle)
	}
	return nil
}

// wipe replaces the task's database by an empty one. What it held is in the changelogs.
func (e *Engine) wipe(t *task, why string) error {
	e.log.Info("local state is not used", zap.Stringer("task", t.id), zap.String("reason", why))
	if err := t.db.Close(); err != nil {
		return &localError{err}
	}
	t.db = nil
	return e.startEmpty(t)
}

// local returns the position per changelog that the task's database holds, or nil and the reason why it
// cannot be rolled forward.
func (e *Engine) local(t *task, s *sight, begins []begin) ([]int64, string, error) {
	blob, err := store.ReadProgress(t.db)
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrClosed) {
		return nil, "", err
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	if blob == nil {
		rows, err := hasRows(t.db)
		if err != nil || rows {
			return nil, "a restore into it was cut short", nil
		}
		return nil, "", nil
	}
	p, err := changelog.DecodeProgress(blob)
	if err != nil {
		return nil, err.Error(), nil
	}
	if id, ok := p.TopicID(t.sub.progress); ok && id != t.sub.topicIDs[t.sub.progress] {
		return nil, "it is of an earlier life of the app: its topics have been made anew since", nil
	}
	if p.Seq > s.progress.Seq {
		// Never a reason to delete it: what was read of the app may be older than what there is.
		return nil, "", &mismatch{fmt.Errorf("%w: the local state is of commit %d, the progress record of commit %d; run: tidemark reset --app %s",
			ErrForeignState, p.Seq, s.progress.Seq, e.cfg.App)}
	}
	age := time.Duration(e.cfg.Clock.Now().UnixMilli()-p.Time) * time.Millisecond
	from := make([]int64, len(t.sub.changelogs))
	for i, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		end, ok := p.End(t.sub.Stores[c.store].ID)
		if t.sub.trimmed(i) && !begins[i].lost {
			end = max(end, begins[i].at) // what it lacks in between has expired
		}
		switch {
		case !ok:
			end = begins[i].at // a store the database does not know yet
		case end > b.HighWatermark:
			return nil, fmt.Sprintf("its position %d is beyond the end %d of %s", end, b.HighWatermark, c.name), nil
		case end < b.Start:
			return nil, fmt.Sprintf("its position %d is below the start %d of %s", end, b.Start, c.name), nil
		case age > changelog.DeleteRetention/2 && end+e.markers() < b.LastStable:
			return nil, fmt.Sprintf("it is %v old, deletes may be gone from %s", age.Round(time.Hour), c.name), nil
		}
		from[i] = end
	}
	return from, "", nil
}

// markers is how far the end of a changelog lies behind the last record of the last commit when nothing came
// after it: the marker of that transaction. A later transaction would have left two offsets at least.
func (e *Engine) markers() int64 {
	if e.cfg.Guarantee == AtLeastOnce {
		return 0
	}
	return 1
}

// hasRows says whether a database holds anything.
func hasRows(db store.DB) (bool, error) {
	it, err := db.Scan(nil, nil)
	if err != nil {
		return false, err
	}
	found := it.Next()
	return found, errors.Join(it.Err(), it.Close())
}

// restore brings the task's state to the last commit, from the local database where possible, and returns the
// position reached per changelog (second half of step 4).
func (e *Engine) restore(ctx context.Context, t *task, s *sight) ([]int64, error) {
	if len(t.sub.Stores) == 0 {
		return nil, nil
	}
	// A database that is read from an object store may wait for long; nobody waits for it longer than for the task.
	stop := context.AfterFunc(ctx, t.kept.cut)
	defer stop()
	seen := e.cfg.Clock.Now()
	for _, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		if id, ok := s.progress.TopicID(c.name); ok && id != t.sub.topicIDs[c.name] {
			return nil, fmt.Errorf("%w: %s was deleted and created again: id was %s, is %s; run: tidemark reset --app %s", ErrChangelogLost, c.name,
				changelog.FormatTopicID(id), changelog.FormatTopicID(t.sub.topicIDs[c.name]), e.cfg.App)
		}
		listed, ok := s.progress.End(t.sub.Stores[c.store].ID)
		if ok && listed > b.HighWatermark {
			return nil, fmt.Errorf("%w: %s ends at %d, the last commit knew %d; run: tidemark reset --app %s",
				ErrChangelogLost, c.name, b.HighWatermark, listed, e.cfg.App)
		}
	}
	begins, err := e.begins(t, s)
	if err != nil {
		return nil, err
	}
	from, source, err := e.findState(ctx, t, s, begins)
	if err != nil {
		return nil, err
	}
	info := RestoreInfo{Task: t.id, Source: source, Seen: seen, At: e.cfg.Clock.Now()}
	parts := t.changelogs(s, from)
	positions, err := e.replay(ctx, t, s, parts, info)
	if err != nil {
		return nil, e.restoreError(err)
	}
	return positions, e.openState(t)
}

// replay reads changelogs into the task's database. A replay that is cut short keeps what it has done, with
// the positions it has reached.
func (e *Engine) replay(ctx context.Context, t *task, s *sight, parts []changelog.Partition, info RestoreInfo) ([]int64, error) {
	bulk, err := store.NewBulk(t.db, t.sub.Stores, e.cfg.RestoreBytes/maxOpening)
	if err != nil {
		return nil, &localError{err}
	}
	for cl, trim := range t.trims {
		if len(trim.Floor) > 0 {
			bulk.Expire(t.sub.changelogs[cl].store, trim.Floor)
		}
	}
	for _, p := range parts {
		info.Total += p.Target - p.From
	}
	e.restoreEvent(info)
	remaining := e.cfg.Metrics.restoreRemaining.WithLabelValues(t.sub.id)
	reached := make([]int64, len(parts))
	for i, p := range parts {
		reached[i] = p.From
	}
	behind, hidden := e.showStale(t, info.Total)
	defer hidden()
	left := info.Total
	remaining.Add(float64(left))
	defer func() { remaining.Add(-float64(left)) }()
	sink := func(i int, r *kgo.Record) error {
		info.Records++
		info.Bytes += int64(len(r.Key) + len(r.Value))
		if info.Records == 1000 {
			e.cfg.CrashPoint(K15)
		}
		reached[i] = r.Offset + 1
		return bulk.Add(t.sub.changelogs[i].store, r.Key, r.Value, changelog.HeaderOf(r, changelog.StateHeader), r.Timestamp.UnixMilli())
	}
	last := e.cfg.Clock.Now()
	progress := func(i int, pos, target int64) {
		var done int64
		reached[i] = pos
		for j, p := range parts {
			done += reached[j] - p.From
		}
		remaining.Add(float64(info.Total - done - left))
		left = info.Total - done
		behind.lag.Store(left)
		if now := e.cfg.Clock.Now(); now.Sub(last) >= time.Second {
			last = now
			info.Done, info.At = done, now
			e.restoreEvent(info)
		}
	}
	positions, err := e.reader.Read(ctx, parts, sink, progress)
	final := *s.progress
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			return nil, err
		}
		// Keep what is there: seq 0 says that it stands for no commit, only for positions.
		final.Seq, final.Writer = 0, 0
		positions = reached
	}
	final.Ends = nil
	for i, c := range t.sub.changelogs {
		final.Ends = append(final.Ends, changelog.StoreEnd{Store: t.sub.Stores[c.store].ID, End: positions[i]})
	}
	blob, berr := final.Append(nil)
	if berr != nil {
		return nil, berr
	}
	if berr := bulk.Finish(blob); berr != nil {
		return nil, &localError{berr}
	}
	if err != nil {
		return nil, err
	}
	now := e.cfg.Clock.Now()
	info.Done, info.Finished, info.Took = info.Total, true, now.Sub(info.At)
	e.cfg.Metrics.restored.WithLabelValues(info.Source).Add(float64(info.Records))
	e.restoreEvent(info)
	e.log.Info("task restored", zap.Stringer("task", t.id), zap.String("from", info.Source), zap.Int64("records", info.Records), zap.Int64("bytes", info.Bytes))
	return positions, nil
}

// restoreError gives the reader's errors the names users know.
func (e *Engine) restoreError(err error) error {
	switch {
	case errors.Is(err, changelog.ErrBelowStart):
		return fmt.Errorf("%w: %w; run: tidemark reset --app %s", ErrChangelogTruncated, err, e.cfg.App)
	case errors.Is(err, changelog.ErrTopicGone):
		return fmt.Errorf("%w: %w; run: tidemark reset --app %s", ErrChangelogLost, err, e.cfg.App)
	}
	return err
}

// closeTask releases a task's database. What was not committed is dropped; what was committed is written
// down, whether the lease is still held or not: it is an exact prefix of the committed history.
func (e *Engine) closeTask(t *task) {
	t.hide()
	t.hub.close()
	if t.proc != nil {
		if err := t.proc.Close(); err != nil {
			e.log.Warn("close processors", zap.Stringer("task", t.id), zap.Error(err))
		}
		t.proc = nil
	}
	if t.writing != nil {
		<-t.writing.done
		t.writing = nil
		if err := t.state.Finish(); err != nil {
			e.log.Warn("write store", zap.Stringer("task", t.id), zap.Error(err))
		}
	}
	e.discard(t)
	if t.damaged {
		e.cfg.Metrics.corruptions.Inc()
		if err := e.cfg.SetAside(t.id); err != nil {
			e.log.Error("set the damaged database aside", zap.Stringer("task", t.id), zap.Error(err))
		}
	}
}

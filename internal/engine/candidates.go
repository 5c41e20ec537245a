package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/store"
)

// A task's state is found in one of three places: its own directory, a snapshot, or the changelogs from their start. Each
// is judged first; of those that may be used the one takes part that will be ready soonest, and what it lacks comes from
// the changelogs. One that turns out to be damaged is turned down, and the choice is made anew without it: the changelogs
// come last and lack nothing.

// cheapLocal is how long the rest of a local restore may take before snapshots are looked at.
const cheapLocal = time.Second

// candidate is a place to restore from.
type candidate struct {
	snapshot.Candidate
	ref      snapshot.Ref
	manifest *snapshot.Manifest
}

// findState opens the task's database from where it will be ready soonest, and returns the position per changelog to
// replay from.
func (e *Engine) findState(ctx context.Context, t *task, s *sight, begins []begin) (from []int64, source string, err error) {
	local, here, err := e.lookLocal(ctx, t, s, begins)
	if err != nil {
		return nil, "", err
	}
	list := []candidate{local}
	if local.Rejected != "" || local.Cost > cheapLocal {
		list = append(list, e.lookRemote(ctx, t, s, begins)...)
	}
	list = append(list, e.lookChangelogs(t, s, begins))
	for {
		i, losers := snapshot.Choose(plain(list))
		if i < 0 {
			return nil, "", e.nothingLeft(t, begins)
		}
		c := list[i]
		if len(list) > 2 { // without snapshots there is nothing to choose
			e.log.Info("restore chosen", zap.Stringer("task", t.id), zap.String("from", c.String()), zap.Duration("estimate", c.Cost), zap.Strings("others", losers))
		}
		switch c.Kind {
		case snapshot.Local:
			if t.kept.lazy.Load() != nil {
				return here, "lazy snapshot", nil
			}
			return here, "local", nil
		case snapshot.Remote:
			from, source, err = e.openSnapshot(ctx, t, s, begins, c, list[0].Rejected == "")
			var lost *candidateError
			if !errors.As(err, &lost) {
				return from, source, err
			}
			e.turnDown(t, &list[i], lost)
			if lost.replaced {
				list[0].Rejected = absent
			}
		default:
			if why := list[0].Rejected; why != absent {
				if err := e.wipe(t, why); err != nil {
					return nil, "", err
				}
			}
			from = make([]int64, len(begins))
			for i, b := range begins {
				from[i] = b.at
			}
			return from, "changelog", nil
		}
	}
}

func plain(list []candidate) []snapshot.Candidate {
	out := make([]snapshot.Candidate, len(list))
	for i, c := range list {
		out[i] = c.Candidate
	}
	return out
}

// candidateError says why a snapshot that was chosen cannot be used.
type candidateError struct {
	reason   string // for the metric
	replaced bool   // what was in the directory before is gone: the database is empty
	err      error
}

func (c *candidateError) Error() string { return c.err.Error() }
func (c *candidateError) Unwrap() error { return c.err }

func (e *Engine) turnDown(t *task, c *candidate, why *candidateError) {
	c.Rejected = why.Error()
	e.cfg.Metrics.snapshotRejected.WithLabelValues(why.reason).Inc()
	e.log.Warn("snapshot is of no use", zap.Stringer("task", t.id), zap.String("snapshot", c.ref.Key), zap.String("reason", why.reason), zap.Error(why.err))
	if why.reason == damagedSnapshot || why.reason == missingSnapshot {
		e.damaged.add(c.ref.Key)
	}
}

// Reasons to turn a snapshot down.
const (
	damagedSnapshot     = "damaged"
	missingSnapshot     = "missing"
	unreachableSnapshot = "unreachable"
	unfitSnapshot       = "unfit"
)

func snapshotReason(err error) string {
	switch {
	case errors.Is(err, snapshot.ErrDamaged), errors.Is(err, store.ErrCorrupt):
		return damagedSnapshot
	case errors.Is(err, objects.ErrNotFound):
		return missingSnapshot
	}
	return unreachableSnapshot
}

// nothingLeft is the error when not even the changelogs will do.
func (e *Engine) nothingLeft(t *task, begins []begin) error {
	for cl, c := range t.sub.changelogs {
		if begins[cl].lost {
			return fmt.Errorf("%w: %s/%d begins at %d, what was below is lost and neither the local state nor a snapshot can replace it; run: tidemark reset --app %s",
				ErrChangelogTruncated, c.name, t.id.Partition, begins[cl].at, e.cfg.App)
		}
	}
	return fmt.Errorf("tidemark: task %s: nothing to restore from", t.id)
}

// absent is why a directory that holds nothing is not used.
const absent = "there is none"

// lookLocal opens the task's directory and judges what is in it. If it cannot be used, the database is open all the same.
func (e *Engine) lookLocal(ctx context.Context, t *task, s *sight, begins []begin) (candidate, []int64, error) {
	c := candidate{Candidate: snapshot.Candidate{Kind: snapshot.Local}}
	if err := e.openHere(ctx, t); err != nil {
		return c, nil, err
	}
	from, why, err := e.localWithin(t, s, begins)
	var lost *candidateError
	switch {
	case errors.Is(err, store.ErrCorrupt):
		from, why, err = nil, "", e.replaceDamaged(t, err)
	case errors.As(err, &lost):
		e.turnDown(t, &c, lost)
		return c, nil, nil
	}
	if err != nil {
		return c, nil, err
	}
	if from == nil {
		if c.Rejected = why; why == "" {
			c.Rejected = absent
		}
		return c, nil, nil
	}
	c.Cost = snapshot.Estimate(0, t.tail(s, from), e.rates())
	return c, from, nil
}

// openHere opens the task's directory, whether it lacks files of a snapshot or not.
func (e *Engine) openHere(ctx context.Context, t *task) error {
	err := e.openDB(t)
	if errors.Is(err, store.ErrHydrating) {
		err = e.resumeLazy(ctx, t)
	}
	return err
}

// localWithin is local with a bound for databases that are read from an object store. If that does not answer, the error is a
// *candidateError and the database is empty.
func (e *Engine) localWithin(t *task, s *sight, begins []begin) ([]int64, string, error) {
	if t.kept.lazy.Load() == nil {
		return e.local(t, s, begins)
	}
	var from []int64
	var why string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		from, why, err = e.local(t, s, begins)
	}()
	select {
	case <-done:
		return from, why, err
	case <-e.cfg.Clock.After(lazyPatience):
	}
	_ = t.db.Close() // ends the reads that wait
	<-done
	t.db = nil
	if err := e.startEmpty(t); err != nil {
		return nil, "", err
	}
	return nil, "", &candidateError{unreachableSnapshot, true, fmt.Errorf("its files do not arrive within %v", lazyPatience)}
}

// lazyPatience is how long a lazily opened database may take to show what it holds.
const lazyPatience = 30 * time.Second

// tail returns how many offsets lie between positions and the ends of the changelogs.
func (t *task) tail(s *sight, from []int64) (n int64) {
	for i, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		n += max(0, b.HighWatermark-max(from[i], b.Start))
	}
	return n
}

// rates are how fast restores are reckoned to go.
func (e *Engine) rates() snapshot.Rates {
	if s := e.cfg.Snapshots; s != nil {
		return snapshot.Rates{BytesPerSecond: s.FetchRate, RecordsPerSecond: s.ReplayRate}
	}
	return snapshot.Rates{}
}

// lookChangelogs judges the changelogs from their start.
func (e *Engine) lookChangelogs(t *task, s *sight, begins []begin) candidate {
	c := candidate{Candidate: snapshot.Candidate{Kind: snapshot.Changelog}}
	from := make([]int64, len(begins))
	for i, b := range begins {
		if from[i] = b.at; b.lost {
			c.Rejected = fmt.Sprintf("%s begins at %d, what was below is lost", t.sub.changelogs[i].name, b.at)
		}
	}
	c.Cost = snapshot.Estimate(0, t.tail(s, from), e.rates())
	return c
}

// lookRemote reads and judges the snapshots of the last progress record, the newest first.
func (e *Engine) lookRemote(ctx context.Context, t *task, s *sight, begins []begin) []candidate {
	if e.cfg.Snapshots == nil {
		return nil
	}
	var out []candidate
	for _, ref := range slices.Backward(t.kept.list.refs) {
		c := candidate{ref: ref, Candidate: snapshot.Candidate{Kind: snapshot.Remote, Name: fmt.Sprintf("of commit %d", ref.Seq)}}
		if e.damaged.has(ref.Key) {
			c.Rejected = "it is damaged"
			out = append(out, c)
			continue
		}
		m, err := e.loadManifest(ctx, ref)
		if err != nil {
			e.turnDown(t, &c, &candidateError{snapshotReason(err), false, err})
			out = append(out, c)
			continue
		}
		c.manifest = m
		c.Rejected = snapshot.Judge(m, e.facts(t, s, begins))
		from := make([]int64, len(begins))
		for i, cl := range t.sub.changelogs {
			end, ok := m.End(t.sub.Stores[cl.store].ID)
			if from[i] = begins[i].at; ok {
				from[i] = max(end, from[i])
			}
		}
		bytes := m.Bytes()
		if e.lazily(bytes) {
			bytes = min(bytes, lazyBytes)
		}
		c.Cost = snapshot.Estimate(bytes, t.tail(s, from), e.rates())
		out = append(out, c)
	}
	return out
}

// lazyBytes is about what a task reads of a snapshot that is opened lazily before it runs.
const lazyBytes = 8 << 20

// lazily says whether a snapshot of this size is opened before it is fetched.
func (e *Engine) lazily(bytes int64) bool {
	switch e.cfg.Snapshots.Restore {
	case RestoreLazy:
		return true
	case RestoreFull:
		return false
	}
	return float64(bytes) > e.cfg.Snapshots.FetchRate
}

func (e *Engine) loadManifest(ctx context.Context, ref snapshot.Ref) (*snapshot.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	return snapshot.Load(ctx, e.snapshotter.store, ref)
}

// facts is what a snapshot is judged by.
func (e *Engine) facts(t *task, s *sight, begins []begin) snapshot.Facts {
	f := snapshot.Facts{
		Task: e.snapshotTask(t), Seq: s.progress.Seq, Now: e.cfg.Clock.Now().UnixMilli(), Retention: changelog.DeleteRetention,
		Markers: e.markers(), Format: e.cfg.Snapshots.Format, Stores: t.readableStores(), TopicIDs: t.sub.topicIDs,
	}
	for i, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		f.Logs = append(f.Logs, snapshot.Log{
			Store: t.sub.Stores[c.store].ID, Start: b.Start, HighWatermark: b.HighWatermark, LastStable: b.LastStable,
			Trimmed: t.sub.trimmed(i) && !begins[i].lost,
		})
	}
	return f
}

// openSnapshot replaces the task's database by a snapshot. A *candidateError means that it cannot be had; the database is
// then open, and empty or what it was.
func (e *Engine) openSnapshot(ctx context.Context, t *task, s *sight, begins []begin, c candidate, keep bool) (from []int64, source string, err error) {
	if err := t.db.Close(); err != nil {
		return nil, "", &localError{err}
	}
	t.db = nil
	t.kept.lazy.Store(nil)
	if e.lazily(c.manifest.Bytes()) && !keep {
		source, err = "lazy snapshot", e.openLazy(t, c.ref.Key, c.manifest, true)
	} else {
		source, err = "snapshot", e.fill(ctx, t, c.manifest)
	}
	if err != nil {
		return nil, "", errors.Join(err, ctx.Err())
	}
	from, why, err := e.localWithin(t, s, begins)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		if err := e.replaceDamaged(t, err); err != nil {
			return nil, "", err
		}
		return nil, "", &candidateError{damagedSnapshot, true, err}
	case err != nil:
		return nil, "", err
	case from == nil:
		if err := e.wipe(t, why); err != nil {
			return nil, "", err
		}
		return nil, "", &candidateError{unfitSnapshot, true, errors.New(why)}
	}
	return from, source, nil
}

// fill fetches all of a snapshot, verified, and opens the database it becomes.
func (e *Engine) fill(ctx context.Context, t *task, m *snapshot.Manifest) error {
	fill, err := e.cfg.Snapshots.Dir.Fill(t.id)
	if err != nil {
		return &localError{err}
	}
	if err := snapshot.Download(ctx, e.snapshotter.store, m, fill, snapshot.Options{Queue: e.snapshotter.fills}); err != nil {
		if aerr := fill.Abort(); aerr != nil {
			return &localError{aerr}
		}
		if errors.Is(err, store.ErrStorage) {
			return &localError{err}
		}
		if oerr := e.openHere(ctx, t); oerr != nil {
			return oerr
		}
		return &candidateError{snapshotReason(err), false, err}
	}
	if err := fill.Finish(); err != nil {
		return &localError{err}
	}
	return e.openDB(t)
}

// openLazy opens the task's database over a snapshot. It begins with an empty directory if anew is set, else it goes on
// with one that an earlier call has left.
func (e *Engine) openLazy(t *task, key string, m *snapshot.Manifest, anew bool) error {
	if anew {
		if err := e.cfg.Wipe(t.id); err != nil {
			return &localError{err}
		}
	}
	h := &hydration{key: key}
	db, err := e.cfg.Snapshots.Dir.Lazy(t.id, snapshot.Source{
		Key: key, Manifest: m, Fetch: e.snapshotter.fetch(m),
		Hydrated: func(err error) { e.hydrated(t, h, err) },
	})
	if err != nil {
		if werr := e.startEmpty(t); werr != nil {
			return werr
		}
		return &candidateError{snapshotReason(err), true, err}
	}
	t.db, h.db = db, db
	t.kept.lazy.Store(h)
	return nil
}

// resumeLazy opens a directory that lacks files of a snapshot. If that cannot be had any more, the directory is emptied.
func (e *Engine) resumeLazy(ctx context.Context, t *task) error {
	if e.cfg.Snapshots == nil {
		e.log.Warn("local state lacks files of a snapshot, and none are configured: it is restored from the changelogs", zap.Stringer("task", t.id))
		return e.startEmpty(t)
	}
	key, ok, err := e.cfg.Snapshots.Dir.Missing(t.id)
	if err != nil {
		return &localError{err}
	}
	i := slices.IndexFunc(t.kept.list.refs, func(r snapshot.Ref) bool { return r.Key == key })
	if !ok || i < 0 || e.damaged.has(key) {
		e.log.Info("local state lacks files of a snapshot that is no longer kept", zap.Stringer("task", t.id), zap.String("snapshot", key))
		return e.startEmpty(t)
	}
	m, err := e.loadManifest(ctx, t.kept.list.refs[i])
	if err == nil {
		err = e.openLazy(t, key, m, false)
	}
	var lost *candidateError
	switch {
	case err == nil, errors.As(err, &lost):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	e.log.Warn("local state lacks files of a snapshot that cannot be read", zap.Stringer("task", t.id), zap.String("snapshot", key), zap.Error(err))
	return e.startEmpty(t)
}

// hydrated is told that a lazily opened database has everything, or cannot have it.
func (e *Engine) hydrated(t *task, h *hydration, err error) {
	h.here.Store(true)
	if err == nil {
		e.log.Info("snapshot is here", zap.Stringer("task", t.id))
		return
	}
	e.cfg.Metrics.snapshotRejected.WithLabelValues(snapshotReason(err)).Inc()
	e.damaged.add(h.key)
	e.log.Error("snapshot is damaged, the task is restored from another one or its changelogs", zap.Stringer("task", t.id), zap.String("snapshot", h.key), zap.Error(err))
}

// keys is a set of snapshots.
type keys struct {
	mu  sync.Mutex
	set map[string]bool
}

func (k *keys) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		k.set = make(map[string]bool)
	}
	k.set[key] = true
}

func (k *keys) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set[key]
}

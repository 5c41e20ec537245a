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
	local, from, err := e.lookLocal(ctx, t, s, begins)
	if err != nil {
		return nil, "", err
	}
	list := []candidate{local}
	if local.Rejected != "" || local.Cost > cheapLocal {
		list = append(list, e.lookRemote(ctx, t, s, begins)...)
	}
	list = append(list, t.lookChangelogs(s, begins))
	for {
		i, losers := snapshot.Choose(plain(list))
		if i < 0 {
			return nil, "", e.nothingLeft(t, begins)
		}
		c := list[i]
		if len(list) > 2 || len(losers) > 0 && local.Rejected != absent {
			e.log.Info("restore chosen", zap.Stringer("task", t.id), zap.String("from", c.String()), zap.Duration("estimate", c.Cost), zap.Strings("others", losers))
		}
		switch c.Kind {
		case snapshot.Local:
			if t.kept.hydrates != "" {
				return from, "lazy snapshot", nil
			}
			return from, "local", nil
		case snapshot.Remote:
			from, source, err = e.openSnapshot(ctx, t, s, begins, c, local.Rejected == "")
			var lost *candidateError
			if !errors.As(err, &lost) {
				return from, source, err
			}
			e.turnDown(t, &list[i], lost)
			if local.Rejected == "" {
				// What was here has made room, or may have.
				list[0].Rejected = "it was replaced"
			}
		default:
			if local.Rejected != absent {
				err = e.wipe(t, local.Rejected)
			}
			from = make([]int64, len(begins))
			for i, b := range begins {
				from[i] = b.at
			}
			return from, "changelog", err
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
	reason string // for the metric
	err    error
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
	err := e.openDB(t)
	if errors.Is(err, store.ErrHydrating) {
		err = e.resumeLazy(ctx, t)
	}
	if err != nil {
		return c, nil, err
	}
	from, why, err := e.localWithin(ctx, t, s, begins)
	if errors.Is(err, store.ErrCorrupt) {
		from, why, err = nil, "it is damaged", e.replaceDamaged(t, err)
		t.kept.forgetLazy()
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
	c.Cost = snapshot.Estimate(0, t.tail(s, from), snapshot.Rates{})
	return c, from, nil
}

// localWithin is local with a bound for databases that are read from an object store: one that does not answer is as good
// as none.
func (e *Engine) localWithin(ctx context.Context, t *task, s *sight, begins []begin) ([]int64, string, error) {
	if t.kept.hydrates == "" {
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
	late := false
	select {
	case <-done:
	case <-ctx.Done():
		late = true
	case <-e.cfg.Clock.After(lazyPatience):
		late = true
	}
	if late {
		t.db.Close() // ends the reads that wait
		<-done
		t.kept.forgetLazy()
		t.db = nil
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		return nil, "its snapshot does not arrive", e.startEmpty(t)
	}
	return from, why, err
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

// lookChangelogs judges the changelogs from their start.
func (t *task) lookChangelogs(s *sight, begins []begin) candidate {
	c := candidate{Candidate: snapshot.Candidate{Kind: snapshot.Changelog}}
	from := make([]int64, len(begins))
	for i, b := range begins {
		if from[i] = b.at; b.lost {
			c.Rejected = fmt.Sprintf("%s begins at %d, what was below is lost", t.sub.changelogs[i].name, b.at)
		}
	}
	c.Cost = snapshot.Estimate(0, t.tail(s, from), snapshot.Rates{})
	return c
}

// lookRemote reads and judges the snapshots of the last progress record, the newest first.
func (e *Engine) lookRemote(ctx context.Context, t *task, s *sight, begins []begin) []candidate {
	if e.cfg.Snapshots == nil {
		return nil
	}
	var out []candidate
	for _, ref := range slices.Backward(t.kept.refs) {
		c := candidate{ref: ref, Candidate: snapshot.Candidate{Kind: snapshot.Remote, Name: fmt.Sprintf("of commit %d", ref.Seq)}}
		if e.damaged.has(ref.Key) {
			c.Rejected = "it is damaged"
			out = append(out, c)
			continue
		}
		m, err := e.loadManifest(ctx, ref)
		if err != nil {
			e.turnDown(t, &c, &candidateError{snapshotReason(err), err})
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
		c.Cost = snapshot.Estimate(bytes, t.tail(s, from), snapshot.Rates{BytesPerSecond: e.cfg.Snapshots.FetchRate})
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
// then open and empty, or what it was.
func (e *Engine) openSnapshot(ctx context.Context, t *task, s *sight, begins []begin, c candidate, keep bool) (from []int64, source string, err error) {
	if err := t.db.Close(); err != nil {
		return nil, "", &localError{err}
	}
	t.db = nil
	t.kept.forgetLazy()
	if e.lazily(c.manifest.Bytes()) && !keep {
		source, err = "lazy snapshot", e.openLazy(t, c.ref.Key, c.manifest, true)
	} else {
		source, err = "snapshot", e.fill(ctx, t, c.manifest)
	}
	if err != nil {
		return nil, "", errors.Join(err, ctx.Err())
	}
	from, why, err := e.localWithin(ctx, t, s, begins)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		if err := e.replaceDamaged(t, err); err != nil {
			return nil, "", err
		}
		t.kept.forgetLazy()
		return nil, "", &candidateError{damagedSnapshot, err}
	case err != nil:
		return nil, "", err
	case from == nil:
		if err := e.wipe(t, why); err != nil {
			return nil, "", err
		}
		t.kept.forgetLazy()
		return nil, "", &candidateError{unfitSnapshot, errors.New(why)}
	}
	return from, source, nil
}

// fill fetches all of a snapshot, verified, and opens the database it becomes.
func (e *Engine) fill(ctx context.Context, t *task, m *snapshot.Manifest) error {
	fill, err := e.cfg.Snapshots.Dir.Fill(t.id)
	if err != nil {
		return &localError{err}
	}
	if err := snapshot.Download(ctx, e.snapshotter.store, m, fill, snapshot.Options{}); err != nil {
		if aerr := fill.Abort(); aerr != nil {
			return &localError{aerr}
		}
		if errors.Is(err, store.ErrStorage) {
			return &localError{err}
		}
		if oerr := e.openDB(t); oerr != nil {
			return oerr
		}
		return &candidateError{snapshotReason(err), err}
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
	db, err := e.cfg.Snapshots.Dir.Lazy(t.id, snapshot.Source{
		Key: key, Manifest: m, Fetch: e.snapshotter.fetch(m),
		Hydrated: func(err error) { e.hydrated(t, key, err) },
	})
	if err != nil {
		if werr := e.startEmpty(t); werr != nil {
			return werr
		}
		return &candidateError{snapshotReason(err), err}
	}
	t.db = db
	t.kept.hydrates = key
	t.kept.hydrated.Store(false)
	missing := func() int64 {
		have, total := e.cfg.Snapshots.Dir.Hydration(db)
		return total - have
	}
	t.kept.missing.Store(&missing)
	for i := range t.kept.refs {
		if t.kept.refs[i].Key == key && t.kept.refs[i].Kept == snapshot.Rolling {
			t.kept.refs = slices.Clone(t.kept.refs)
			t.kept.refs[i].Kept = snapshot.Hydrating
		}
	}
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
	i := slices.IndexFunc(t.kept.refs, func(r snapshot.Ref) bool { return r.Key == key })
	if !ok || i < 0 || e.damaged.has(key) {
		e.log.Info("local state lacks files of a snapshot that is no longer kept", zap.Stringer("task", t.id), zap.String("snapshot", key))
		return e.startEmpty(t)
	}
	m, err := e.loadManifest(ctx, t.kept.refs[i])
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
func (e *Engine) hydrated(t *task, key string, err error) {
	t.kept.missing.Store(nil)
	if err == nil {
		t.kept.hydrated.Store(true)
		e.log.Info("snapshot is here", zap.Stringer("task", t.id))
		return
	}
	reason := snapshotReason(err)
	e.cfg.Metrics.snapshotRejected.WithLabelValues(reason).Inc()
	e.damaged.add(key)
	e.log.Error("snapshot is damaged, the task is restored from another one or its changelogs", zap.Stringer("task", t.id), zap.String("snapshot", key), zap.Error(err))
}

// forgetLazy notes that the database is no longer the lazily opened one.
func (k *keeping) forgetLazy() {
	k.hydrates = ""
	k.hydrated.Store(false)
	k.missing.Store(nil)
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

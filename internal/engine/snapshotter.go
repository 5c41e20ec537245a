package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
)

// snapshotter uploads checkpoints and deletes what is left of snapshots (steps 3 and 5 of publish.go), one task after the
// other on one goroutine: whatever it does never holds up processing, takes one processor at most, and no collection runs
// beside an upload.
type snapshotter struct {
	e        *Engine
	uploader *snapshot.Uploader
	store    objects.Store
	fills    *snapshot.Queue

	mu   sync.Mutex
	jobs []job
	bell chan struct{}
	shut bool
}

// job is an upload, with a checkpoint, or a collection.
type job struct {
	task       *task
	checkpoint snapshot.Copy
	head       snapshot.Manifest
	refs       []snapshot.Ref
	memo       *snapshot.Memo
	news       *published
	begun      time.Time
}

// fillFiles is how many files of snapshots are fetched at a time for each worker, and leastFiles for all of them at least, over the
// tasks that are restored before they run. Twice as many made no task ready sooner and the first one later.
const (
	fillFiles  = 2
	leastFiles = 4
)

func newSnapshotter(e *Engine) *snapshotter {
	s := &snapshotter{e: e, bell: make(chan struct{}, 1), fills: snapshot.NewQueue(max(leastFiles, fillFiles*e.cfg.Workers))}
	if c := e.cfg.Snapshots; c != nil {
		s.store = &watched{Store: c.Store, at: e.cfg.CrashPoint}
		s.uploader = snapshot.New(objects.LimitPuts(s.store, c.Rate.Take), snapshot.Options{Parallel: 1, Take: c.Rate.Take})
	}
	return s
}

// post hands over a job. After the end a checkpoint is removed at once.
func (s *snapshotter) post(j job) {
	s.mu.Lock()
	shut := s.shut
	if !shut {
		s.jobs = append(s.jobs, j)
	}
	s.mu.Unlock()
	if shut {
		s.drop(j)
		return
	}
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

func (s *snapshotter) drop(j job) {
	if j.checkpoint == nil {
		return
	}
	if err := j.checkpoint.Remove(); err != nil {
		s.e.log.Warn("remove checkpoint", zap.Stringer("task", j.task.id), zap.Error(err))
	}
	j.task.kept.busy.Store(false)
}

func (s *snapshotter) next() (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 {
		return job{}, false
	}
	j := s.jobs[0]
	s.jobs = s.jobs[1:]
	return j, true
}

// run is the snapshotter's goroutine.
func (s *snapshotter) run(ctx context.Context) {
	defer func() {
		s.mu.Lock()
		s.shut = true
		left := s.jobs
		s.jobs = nil
		s.mu.Unlock()
		for _, j := range left {
			s.drop(j)
		}
	}()
	sweep := s.e.cfg.Clock.NewTicker(sweepPeriod)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		case <-sweep.C():
			s.sweep(ctx)
			continue
		}
		for ctx.Err() == nil {
			j, ok := s.next()
			if !ok {
				break
			}
			if j.checkpoint != nil {
				s.upload(ctx, j)
			} else {
				s.collect(ctx, j)
			}
		}
	}
}

// upload is step 3. What came of it is the worker's to publish.
func (s *snapshotter) upload(ctx context.Context, j job) {
	t, e := j.task, s.e
	defer s.drop(j)
	if t.lease.lost() {
		return
	}
	start := e.cfg.Clock.Now()
	retained := t.kept.manifests(ctx, s.store, j.refs)
	ref, m, stats, err := s.uploader.Upload(ctx, j.checkpoint, j.head, retained, j.memo)
	e.cfg.Metrics.snapshotBytes.Add(float64(stats.UploadedBytes))
	if err != nil {
		if ctx.Err() == nil {
			e.snapshotFailed(t, err)
		}
		return
	}
	e.cfg.CrashPoint(K12)
	t.kept.failures = 0
	took := e.cfg.Clock.Now().Sub(start)
	e.cfg.Metrics.snapshotSeconds.Observe(took.Seconds())
	if f := e.cfg.Events.Snapshot; f != nil {
		f(SnapshotInfo{Task: t.id, Seq: ref.Seq, Bytes: ref.Bytes, Uploaded: stats.UploadedBytes, Took: took})
	}
	t.kept.done.Store(&published{ref: ref, manifest: m, begun: j.begun})
}

// manifests returns those of the retained snapshots that can be read, without the files that are lost. What is lacking only
// means more to upload.
func (k *keeping) manifests(ctx context.Context, store objects.Store, refs []snapshot.Ref) []*snapshot.Manifest {
	loaded := make(map[string]*snapshot.Manifest, len(refs))
	var out []*snapshot.Manifest
	for _, ref := range refs {
		m := k.loaded[ref.Key]
		if m == nil {
			var err error
			if m, err = snapshot.Load(ctx, store, ref); err != nil {
				continue
			}
		}
		loaded[ref.Key] = m
		if len(k.lost) > 0 {
			there := *m
			there.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f snapshot.File) bool { return slices.Contains(k.lost, m.Object(f)) })
			m = &there
		}
		out = append(out, m)
	}
	k.loaded = loaded
	return out
}

// collect is step 5.
func (s *snapshotter) collect(ctx context.Context, j job) {
	t, e := j.task, s.e
	if t.kept.loaded == nil {
		t.kept.loaded = make(map[string]*snapshot.Manifest)
	}
	t.kept.loaded[j.news.ref.Key] = j.news.manifest
	if t.lease.lost() {
		return
	}
	n, lost, err := snapshot.Collect(ctx, s.store, e.snapshotTask(t), j.refs, j.begun, e.cfg.Snapshots.Grace)
	e.cfg.Metrics.snapshotDeleted.Add(float64(n))
	if err != nil && ctx.Err() == nil {
		e.log.Warn("old snapshots are not deleted", zap.Stringer("task", t.id), zap.Error(err))
	}
	if err == nil || len(lost) > 0 {
		t.kept.lost = lost
	}
	if len(lost) > 0 {
		e.log.Warn("the object store has lost parts of snapshots: the next snapshot puts them there again",
			zap.Stringer("task", t.id), zap.Int("files", len(lost)))
		t.kept.again.Store(true)
	}
}

func (e *Engine) snapshotTask(t *task) snapshot.Task {
	return snapshot.Task{App: e.cfg.App, Sub: t.id.Sub, Partition: t.id.Partition}
}

// sweepPeriod is the time between two looks for what tasks have left that the app no longer has.
const sweepPeriod = 6 * time.Hour

// sweep deletes what is left of tasks that no longer exist. The instance with the first task of all does it for the app.
func (s *snapshotter) sweep(ctx context.Context) {
	e := s.e
	first := false
	for _, t := range e.mgr.snapshot() {
		first = first || t.sub == e.subs[0] && t.id.Partition == 0 && !t.lease.lost()
	}
	if !first {
		return
	}
	now := e.cfg.Clock.Now()
	n, err := snapshot.SweepApp(ctx, s.store, e.cfg.App, func(t snapshot.Task) ([]snapshot.Ref, bool) {
		for _, sub := range e.subs {
			if sub.id == t.Sub && t.Partition < sub.tasks {
				return nil, true
			}
		}
		return nil, false
	}, now, snapshot.Abandoned)
	e.cfg.Metrics.snapshotDeleted.Add(float64(n))
	if err != nil && ctx.Err() == nil {
		e.log.Warn("snapshots of former tasks are not deleted", zap.Error(err))
	}
}

// snapshotFailed counts a failure, and raises an alarm when they go on. Nothing else depends on it: the last snapshots are
// kept, and the changelogs hold everything.
func (e *Engine) snapshotFailed(t *task, err error) {
	if err == nil {
		return
	}
	t.kept.failures++
	t.kept.again.Store(true)
	e.cfg.Metrics.snapshots.WithLabelValues("failed").Inc()
	e.log.Warn("snapshot failed", zap.Stringer("task", t.id), zap.Int("in_a_row", t.kept.failures), zap.Error(err))
	if f := e.cfg.Events.Snapshot; f != nil {
		f(SnapshotInfo{Task: t.id, Err: err, Alarm: t.kept.failures >= snapshotAlarm})
	}
}

// watched tells the crash tests where in a snapshot the process is.
type watched struct {
	objects.Store
	at func(Point)
}

func (w *watched) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if isManifest(key) {
		w.at(K11)
	}
	return w.Store.Put(ctx, key, body)
}

func (w *watched) Delete(ctx context.Context, keys ...string) error {
	if len(keys) > 1 {
		if err := w.Store.Delete(ctx, keys[0]); err != nil {
			return err
		}
		w.at(K13)
		keys = keys[1:]
	}
	return w.Store.Delete(ctx, keys...)
}

func (w *watched) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := w.Store.Get(ctx, key, offset, length)
	if err == nil && !isManifest(key) {
		w.at(K14)
	}
	return r, err
}

func isManifest(key string) bool { return strings.Contains(key, "/manifest/") }

// fetch opens a part of a file of a snapshot.
func (s *snapshotter) fetch(m *snapshot.Manifest) func(ctx context.Context, f snapshot.File, offset, length int64) (io.ReadCloser, error) {
	return func(ctx context.Context, f snapshot.File, offset, length int64) (io.ReadCloser, error) {
		r, err := s.store.Get(ctx, m.Object(f), offset, length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return r, nil
	}
}

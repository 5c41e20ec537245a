package engine

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/store"
)

// A snapshot of a task is made in these steps. The worker carries out 1 and 4, the writer of the committed layer 2, the
// snapshotter 3 and 5.
//
//	1  due: freeze the committed layer
//	2  write the layer, then make a checkpoint of the database: an exact commit, the one its progress row names
//	3  upload what no retained snapshot has, the manifest last
//	4  the reference goes into the next progress record, inside its transaction; every progress record lists all
//	   that are retained
//	5  after that commit, delete what no retained manifest names, and look whether what they name is still there
//
// An owner that has lost the task cannot carry out step 4, so nothing it has uploaded counts.

// keeping is what a task knows of its snapshots. The worker's, but for what is atomic.
type keeping struct {
	list     listing     // as of the last commit
	changed  int64       // bytes of changelog since the last one was begun
	begun    time.Time   // the last one, or the life of the task
	busy     atomic.Bool // one is on its way, from step 1 to the end of step 3
	again    atomic.Bool // the last one has failed
	done     atomic.Pointer[published]
	memo     *snapshot.Memo                // of the database that is open
	loaded   map[string]*snapshot.Manifest // by key; the snapshotter's
	lost     []string                      // files of retained snapshots that the object store no longer has; the snapshotter's
	failures int                           // in a row; whoever has set busy
	newest   atomic.Int64                  // when the newest one was made, ms; 0: there is none
	lazy     atomic.Pointer[hydration]     // nil: the database was not opened over a snapshot
	settle   atomic.Pointer[func()]        // lets the database do in the background what a restore has put off
}

// listing is what a progress record says of snapshots.
type listing struct {
	section []byte
	refs    []snapshot.Ref
	unread  bool // the section is of a later build: it is carried along, and none are made
}

// hydration is a database that is open before all of its files are here. Any goroutine may ask for it.
type hydration struct {
	key  string // of the snapshot
	db   store.DB
	here atomic.Bool // everything
}

// hydrates says whether files of the open database are missing.
func (k *keeping) hydrates() bool {
	h := k.lazy.Load()
	return h != nil && !h.here.Load()
}

// cut closes a database over a snapshot, by any goroutine: what waits for the object store is told store.ErrClosed. The task's
// own close follows.
func (k *keeping) cut() {
	if h := k.lazy.Load(); h != nil {
		_ = h.db.Close()
	}
}

// snapshotting is a snapshot in its steps 1 and 2.
type snapshotting struct {
	begun time.Time
	refs  []snapshot.Ref // as of the last commit
	memo  *snapshot.Memo
}

// published is a snapshot that waits for its commit.
type published struct {
	ref      snapshot.Ref
	manifest *snapshot.Manifest
	begun    time.Time
}

// snapshotDue is step 1. It returns whether the next write of the layer ends in a checkpoint.
func (w *worker) snapshotDue(t *task, now time.Time) bool {
	s := w.e.cfg.Snapshots
	if s == nil || t.base == nil || t.kept.list.unread || t.kept.hydrates() || t.kept.busy.Load() || t.kept.done.Load() != nil {
		return false
	}
	var size int64
	if n := len(t.kept.list.refs); n > 0 {
		size = t.kept.list.refs[n-1].Bytes
	}
	return s.due(now, t.kept.begun, t.kept.changed, size)
}

// snapshotTick starts the snapshot of a task that is due, and has one that is uploaded published. With nothing to write, the
// checkpoint is all there is to do.
func (w *worker) snapshotTick(t *task, now time.Time) {
	if t.kept.done.Load() != nil {
		t.dirty = true
	}
	if t.kept.again.Swap(false) {
		t.kept.changed++ // tried again after the interval, whether anything changes until then or not
	}
	if t.writing != nil || !w.snapshotDue(t, now) {
		return
	}
	t.kept.busy.Store(true)
	t.kept.begun, t.kept.changed = now, 0
	t.writing = &writing{layer: t.state.Freeze(now.UnixMilli(), true), snapshot: &snapshotting{begun: now, refs: t.kept.list.refs, memo: t.kept.memo}}
	w.write(t, t.writing)
}

// checkpoint is the second half of step 2. It runs in the goroutine that has written the layer.
func (e *Engine) checkpoint(t *task, s *snapshotting) {
	fail := func(err error) {
		e.snapshotFailed(t, err)
		t.kept.busy.Store(false)
	}
	blob, err := store.ReadProgress(t.base)
	if err != nil || blob == nil {
		fail(err)
		return
	}
	p, err := changelog.DecodeProgress(blob)
	if err != nil {
		fail(err)
		return
	}
	cp, err := e.cfg.Snapshots.Dir.Checkpoint(t.id, t.base)
	if err != nil {
		fail(err)
		return
	}
	e.cfg.CrashPoint(K10)
	e.snapshotter.post(job{task: t, checkpoint: cp, head: e.head(t, p, s.begun), refs: s.refs, memo: s.memo, begun: s.begun})
}

// head describes the state a database holds.
func (e *Engine) head(t *task, p *changelog.Progress, at time.Time) snapshot.Manifest {
	m := snapshot.Manifest{
		App: e.cfg.App, Sub: t.id.Sub, Partition: t.id.Partition, Seq: p.Seq, Writer: p.Writer,
		Created: at.UnixMilli(), Time: p.Time, W: p.W, Format: e.cfg.Snapshots.Format, Fingerprint: e.plan.StateFingerprint,
		Stores: t.snapshotStores(), TopicIDs: make(map[string][16]byte),
	}
	for _, end := range p.Ends {
		m.Ends = append(m.Ends, snapshot.End(end))
	}
	for _, id := range p.TopicIDs {
		m.TopicIDs[id.Topic] = id.ID
	}
	return m
}

func (t *task) snapshotStores() []snapshot.Store {
	var out []snapshot.Store
	for _, spec := range t.sub.Stores {
		if spec.Derived {
			continue
		}
		r := storeRecord(spec)
		out = append(out, snapshot.Store{ID: r.ID, Kind: r.Kind, KeySchema: r.KeySchema, ValueSchema: r.ValueSchema})
	}
	return out
}

// announcement is a list that a commit replaces the former one by.
type announcement struct {
	listing
	news  *published
	began time.Time // before the commit
}

// references is step 4 for the commit that is being sealed: it puts the list into the progress record, and returns it if a
// snapshot is new in it.
func (t *task) references(e *Engine, p *changelog.Progress, now time.Time) (*announcement, error) {
	news := t.kept.done.Load()
	if news != nil && now.Sub(news.begun) >= e.cfg.Snapshots.Grace {
		// Its objects may count as garbage by now.
		t.kept.done.Store(nil)
		e.log.Warn("snapshot is given up: its upload and the commit behind it took too long", zap.Stringer("task", t.id))
		news = nil
	}
	if news == nil {
		if t.kept.list.section != nil {
			p.SetSection(changelog.SectionSnapshots, t.kept.list.section)
		}
		return nil, nil
	}
	a := &announcement{news: news, began: now}
	a.refs, _ = snapshot.Retain(t.kept.list.refs, news.ref, e.cfg.Snapshots.Keep)
	var err error
	if a.section, err = snapshot.AppendRefs(nil, a.refs); err != nil {
		return nil, err
	}
	p.SetSection(changelog.SectionSnapshots, a.section)
	return a, nil
}

// publish is the end of step 4: the commit has been made.
func (t *task) publish(e *Engine, a *announcement) {
	if a == nil {
		return
	}
	t.kept.list = a.listing
	t.kept.done.Store(nil)
	t.kept.newest.Store(a.news.ref.Created)
	e.cfg.Metrics.snapshots.WithLabelValues("published").Inc()
	e.log.Info("snapshot published", zap.Stringer("task", t.id), zap.Uint64("seq", a.news.ref.Seq), zap.Int64("bytes", a.news.ref.Bytes), zap.Int("kept", len(a.refs)))
	e.snapshotter.post(job{task: t, refs: a.refs, news: a.news, begun: a.began})
}

// inheritSnapshots takes over what the last progress record says of snapshots.
func (t *task) inheritSnapshots(e *Engine, p *changelog.Progress) {
	t.kept.begun, t.kept.changed = e.cfg.Clock.Now(), 0
	t.kept.list = listing{section: p.Section(changelog.SectionSnapshots)}
	var err error
	if t.kept.list.refs, err = snapshot.DecodeRefs(t.kept.list.section); err != nil {
		e.log.Warn("the list of snapshots cannot be read: it is carried along, and none are made", zap.Stringer("task", t.id), zap.Error(err))
		t.kept.list.unread = true
		return
	}
	var newest snapshot.Ref
	if n := len(t.kept.list.refs); n > 0 {
		newest = t.kept.list.refs[n-1]
		t.kept.newest.Store(newest.Created)
		// The age of a task's snapshot does not begin anew with its owner.
		if at := time.UnixMilli(newest.Created); at.Before(t.kept.begun) {
			t.kept.begun = at
		}
	}
	if newest.Seq < p.Seq {
		t.kept.changed = 1 // how much it lacks is not known
	}
}

// snapshotLags shows how old snapshots are and how much of lazily opened databases is not here yet.
func (e *Engine) snapshotLags(now time.Time, tasks []*task) {
	if e.cfg.Snapshots == nil {
		return
	}
	var oldest time.Duration
	var missing int64
	for _, t := range tasks {
		if at := t.kept.newest.Load(); at != 0 {
			oldest = max(oldest, now.Sub(time.UnixMilli(at)))
		}
		if h := t.kept.lazy.Load(); h != nil && !h.here.Load() {
			have, total := e.cfg.Snapshots.Dir.Hydration(h.db)
			missing += total - have
		}
	}
	e.cfg.Metrics.snapshotAge.Set(oldest.Seconds())
	e.cfg.Metrics.hydration.Set(float64(missing))
}

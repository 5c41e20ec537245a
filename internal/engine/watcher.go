package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark/tidemark/query"
)

const (
	// A watcher that has so many rows or bytes waiting for it is told to begin again.
	maxWaitingRows  = 10_000
	maxWaitingBytes = 4 << 20
	// Rows there are come in pages of so many.
	pageRows  = 1000
	pageBytes = 1 << 20
	// A watcher of something that does not change hears this often how far the task has come, so that it need not begin
	// again when it comes back.
	idleNews = 30 * time.Second
)

// watcher is one watch of a range of keys in one task. The hub puts changed rows into it, the reader takes them out.
//
// The rows there are are read page by page, each from the newest commit. What the hub has told meanwhile of rows that a page
// shows is dropped if the page is of that commit or a later one: no row goes back in time.
type watcher struct {
	e      *Engine
	t      *task
	spec   query.WatchSpec
	single bool // one key

	mu    sync.Mutex
	rows  map[string]waiting // by key of the layout
	bytes int64
	lost  bool // what was told is incomplete
	over  bool
	wake  chan struct{} // capacity 1

	// The reader's.
	begun   bool   // rows there are have been asked for, and not all told
	after   []byte // where the next page of them begins
	started bool   // a page was told
	begunAt uint64 // the commit of the first page
	seq     uint64 // up to which everything was told
}

// waiting is a row that a commit has changed and nobody has picked up.
type waiting struct {
	seq uint64
	row query.Row
}

// Watch returns the changes of a task's rows.
func (e *Engine) Watch(_ context.Context, id query.Task, s query.WatchSpec) (query.Watcher, error) {
	t, err := e.taskOf(id)
	if err != nil {
		return nil, err
	}
	w := &watcher{e: e, t: t, spec: s, rows: make(map[string]waiting), wake: make(chan struct{}, 1), seq: s.From}
	r := s.Range
	w.single = len(r.To) == len(r.From)+1 && string(r.To[:len(r.From)]) == string(r.From) && r.To[len(r.From)] == 0
	p, ok := t.hub.add(e, t, w)
	if !ok {
		if t.lease.lost() {
			return nil, e.elsewhereIs(id)
		}
		return nil, &query.Error{Reason: query.Restoring, Task: id, Message: "the task is being restored"}
	}
	w.resume(p)
	return w, nil
}

// resume fills in what commits have changed between where the reader was and where the hub began to tell.
func (w *watcher) resume(p *exposed) {
	if w.spec.From == 0 || w.spec.From > p.meta.Seq {
		w.begun = true
		return
	}
	complete := p.rows.Since(w.spec.From, w.spec.Store.Index, func(key, row []byte) {
		r, ok, err := query.UserRow(w.spec.Store, key, row)
		switch {
		case err != nil:
			w.lose()
		case ok && w.spec.Range.Contains(r.Key):
			w.put(p.meta.Seq, key, r)
		}
	})
	if !complete {
		w.begun = true
	}
}

// put is told of a changed row: of several for one key the latest, or of one call of Since the first, counts.
func (w *watcher) put(seq uint64, key []byte, r query.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return
	}
	old, had := w.rows[string(key)]
	if had && old.seq >= seq {
		return
	}
	w.rows[string(key)] = waiting{seq, r}
	w.bytes += int64(len(r.Key)+len(r.Value)) - int64(len(old.row.Key)+len(old.row.Value))
	if len(w.rows) > maxWaitingRows || w.bytes > maxWaitingBytes {
		w.forget()
	}
	w.signal()
}

// lose is told that changes are missing.
func (w *watcher) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	w.signal()
}

func (w *watcher) forget() {
	w.lost, w.rows, w.bytes = true, make(map[string]waiting), 0
}

func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close implements query.Watcher.
func (w *watcher) Close() { w.t.hub.remove(w) }

// Next implements query.Watcher.
func (w *watcher) Next(ctx context.Context) (query.Changes, error) {
	for {
		c, ok, err := w.ready(ctx)
		if ok || err != nil {
			return c, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return query.Changes{}, query.Errorf(query.Deadline, "the watch has ended")
		case <-w.e.cfg.Clock.After(idleNews):
			if c, ok := w.news(); ok {
				return c, nil
			}
		}
	}
}

// ready returns what can be told at once.
func (w *watcher) ready(ctx context.Context) (c query.Changes, ok bool, err error) {
	w.mu.Lock()
	over := w.over || w.t.lease.lost()
	if w.lost {
		w.lost, w.begun, w.after, w.started = false, true, nil, false
	}
	w.mu.Unlock()
	if over {
		return c, false, &query.Error{Reason: query.Moved, Message: "the task has left this instance", Task: w.id()}
	}
	if w.begun {
		c, err = w.page(ctx)
		return c, err == nil, err
	}
	h := &w.t.hub
	h.mu.Lock() // or the hub might have told half of a commit
	defer h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) == 0 || w.lost || h.at == nil {
		return c, false, nil
	}
	for _, x := range w.rows {
		c.Rows = append(c.Rows, x.row)
	}
	c.Meta, w.seq = h.at.meta, h.at.meta.Seq
	clear(w.rows)
	w.bytes = 0
	return c, true, nil
}

func (w *watcher) id() query.Task {
	return query.Task{Sub: w.t.sub.id, Partition: w.t.id.Partition}
}

// page reads the next rows there are.
func (w *watcher) page(ctx context.Context) (query.Changes, error) {
	v, err := w.e.View(ctx, w.id(), query.Want{Position: w.position(w.seq)})
	if err != nil {
		return query.Changes{}, err
	}
	defer v.Close()
	spec := query.Page{Range: w.spec.Range, After: w.after, Rows: pageRows, Bytes: pageBytes, Visit: 10 * pageRows}
	if w.single {
		spec.Key = w.spec.Range.From
	}
	rows, next, err := v.Read(ctx, w.spec.Store, spec)
	if err != nil {
		return query.Changes{}, err
	}
	c := query.Changes{Meta: v.Meta, Rows: rows, Reset: !w.started, More: next != nil}
	h := &w.t.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := w.t.public.Load(); p != nil && h.at != nil {
		h.advance(p) // everything up to the commit of the page is told before it is decided what the page makes superfluous
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, x := range w.rows {
		if x.seq <= v.Seq && string(k) > string(w.after) && (next == nil || k <= string(next)) {
			delete(w.rows, k)
			w.bytes -= int64(len(x.row.Key) + len(x.row.Value))
		}
	}
	if !w.started {
		w.begunAt = v.Seq
	}
	w.started, w.after, w.begun = true, next, next != nil
	if !w.begun {
		// Rows of earlier pages may have changed since: they are told next, and until then the reader is only as far as the
		// first page was.
		w.started = false
		c.Meta.Seq = min(v.Seq, w.begunAt)
		c.Meta.Position = w.position(c.Meta.Seq)
		w.seq = max(w.seq, c.Meta.Seq)
	}
	return c, nil
}

func (w *watcher) position(seq uint64) query.Position {
	return query.Position{{Name: w.t.sub.id, Partition: w.t.id.Partition, Commit: true, Number: int64(seq)}}
}

// news returns how far the task has come, if that is farther than the reader knows and there is nothing else to tell.
func (w *watcher) news() (query.Changes, bool) {
	h := &w.t.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.at == nil || len(w.rows) > 0 || w.lost || w.begun || h.at.meta.Seq <= w.seq {
		return query.Changes{}, false
	}
	w.seq = h.at.meta.Seq
	return query.Changes{Meta: h.at.meta}, true
}

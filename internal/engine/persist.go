package engine

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/store"
)

// writing is a committed layer on its way to the task's database.
type writing struct {
	layer    *store.Frozen // nil: nothing to write, only a checkpoint to make
	done     chan struct{} // closed when the write has returned
	failed   bool          // the last attempt failed and was reported
	retryAt  int64         // wall clock in ms of the next attempt after a failure
	pause    int64         // before the attempt after that, in ms
	snapshot *snapshotting // a checkpoint is made when it is written
}

// persist writes a task's committed layer to its database when it is due (second half of step 6). The write
// runs beside the worker: the layer is frozen, and reads consult it until it is in the database. A disk that
// refuses is tried again and again; the task goes on meanwhile, until its memory is full. The error returned
// says that the database is of no further use.
func (w *worker) persist(t *task, nowMs int64) error {
	if t.state == nil {
		return nil
	}
	if wr := t.writing; wr != nil {
		select {
		case <-wr.done:
		default:
			return nil
		}
		var err error
		if wr.layer != nil {
			err = t.state.Finish()
		}
		switch {
		case errors.Is(err, store.ErrCorrupt):
			return err
		case err != nil:
			if !wr.failed {
				wr.failed = true
				w.log.Error("store cannot be written, trying again", zap.Stringer("task", t.id), zap.Error(err))
			}
			if wr.retryAt == 0 {
				wr.pause = min(2*wr.pause+100, 5000)
				wr.retryAt = nowMs + wr.pause
			}
			if nowMs >= wr.retryAt {
				wr.retryAt = 0
				w.write(t, wr)
			}
			return nil
		}
		if wr.failed {
			w.log.Info("store written again", zap.Stringer("task", t.id))
		}
		t.writing = nil
		t.exposeDisk()
	}
	if f := t.state.Freeze(nowMs, false); f != nil {
		t.writing = &writing{layer: f}
		w.write(t, t.writing)
	}
	return nil
}

// write starts an attempt to write a layer. Its error is kept by the layer and comes back from Finish.
func (w *worker) write(t *task, wr *writing) {
	wr.done = make(chan struct{})
	done := wr.done
	w.e.mgr.wg.Go(func() {
		defer w.signal() // the task may be waiting
		defer close(done)
		if wr.layer != nil {
			w.e.cfg.CrashPoint(K8)
			if err := wr.layer.Write(); err != nil {
				w.log.Debug("write store", zap.Stringer("task", t.id), zap.Error(err))
				return
			}
			w.e.cfg.CrashPoint(K9)
		}
		if wr.snapshot != nil {
			w.e.checkpoint(t, wr.snapshot)
		}
	})
}

// stalled says whether a task must not take more records because its database does not take its layers: the next one
// is full before the last is written. A disk that refuses gets more time, there may be nothing else to wait for.
func (t *task) stalled(e *Engine) bool {
	if t.writing == nil {
		return false
	}
	limit := e.share().LayerBytes
	if t.writing.failed {
		limit *= 4
	} else {
		select {
		case <-t.writing.done:
			return false
		default:
		}
	}
	return t.state.Memory().Layer > limit
}

// share is one task's part of the instance's memory for state. It changes with the number of tasks, and the
// workers look at it once per tick.
func (e *Engine) share() store.Options {
	o := e.cfg.StateOptions
	if n := max(e.stateful.Load(), 1); n > 1 {
		o.ViewBytes, o.LayerBytes = max(o.ViewBytes/n, 1<<20), max(o.LayerBytes/n, 1<<20)
	}
	return o
}

// sweep finishes layers that have been written and starts those whose age is due. Called at every tick, with
// no flight in the air.
func (w *worker) sweep(ctx context.Context, nowMs int64) {
	share := w.e.share()
	for _, t := range w.tasks {
		if t.state != nil {
			t.state.Resize(share.ViewBytes, share.LayerBytes)
			m := t.state.Memory()
			t.memory.views.Store(m.Views)
			t.memory.overlay.Store(m.Overlay)
			t.memory.layer.Store(m.Layer + m.Frozen)
		}
		if err := w.persist(t, nowMs); err != nil {
			w.broken = &brokenTask{t, err}
			w.repair(ctx)
			return
		}
		w.snapshotTick(t, time.UnixMilli(nowMs))
	}
}

// brokenTask is a task whose database has failed under it.
type brokenTask struct {
	task *task
	err  error
}

// repair takes back what is not committed and opens a task with a damaged database anew; the database is set
// aside and the state comes back from the changelogs. Any other failure of a database ends Run: what it means
// only a person can tell. Called with no flight in the air.
func (w *worker) repair(ctx context.Context) {
	b := w.broken
	w.broken = nil
	if !errors.Is(b.err, store.ErrCorrupt) {
		w.e.taskFailed(b.task, b.err)
		return
	}
	w.log.Error("database is damaged, the task is restored from its changelogs", zap.Stringer("task", b.task.id), zap.Error(b.err))
	b.task.damaged = true
	w.abort(ctx, "damaged store")
	w.forget(b.task)
	w.e.mgr.reopen(b.task)
}

// forget removes a task from the worker.
func (w *worker) forget(t *task) {
	for i, u := range w.tasks {
		if u == t {
			w.tasks = append(w.tasks[:i], w.tasks[i+1:]...)
			return
		}
	}
}

// firstGrowth stands for the growth of a task's writes until it has been seen.
const firstGrowth = 4

// dirtyBytes estimates the memory of the current generation's writes, together with what their commit makes of them:
// encoded rows, changelog records and coalesced output, for rows of a few bytes many times their size. How much that
// is per byte written is taken from the last commits.
func (t *task) dirtyBytes() int64 {
	if t.state == nil {
		return 0
	}
	growth := t.growth
	if growth == 0 {
		growth = firstGrowth
	}
	return int64(float64(t.state.Dirty()-t.sealed) * (1 + growth))
}

// grown notes that writes of so many bytes have become so many more when they were sealed.
func (t *task) grown(before, more int64) {
	t.sealed = t.state.Dirty()
	if before <= 0 {
		return
	}
	g := float64(more) / float64(before)
	if t.growth > 0 {
		g = (g + t.growth) / 2
	}
	t.growth = g
}

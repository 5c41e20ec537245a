package engine

import (
	"github.com/tidemark/tidemark/store"
)

// persist writes a task's committed layer to its database when it is due (second half of step 6). The write
// runs beside the worker: the layer is frozen, and reads consult it until it is in the database.
func (w *worker) persist(t *task, nowMs int64, force bool) error {
	if t.state == nil {
		return nil
	}
	if t.persisting != nil {
		select {
		case <-t.persisting:
			t.persisting = nil
			if err := t.state.Finish(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	f := t.state.Freeze(nowMs, force)
	if f == nil {
		return nil
	}
	done := make(chan struct{})
	t.persisting = done
	w.e.mgr.wg.Go(func() {
		defer close(done)
		w.e.write(f)
		w.signal()
	})
	return nil
}

// write carries out the write. Its error is kept by the frozen layer and comes back from Finish.
func (e *Engine) write(f *store.Frozen) {
	e.cfg.CrashPoint(K8)
	if err := f.Write(); err != nil {
		e.log.Warn("write store: " + err.Error())
	}
	e.cfg.CrashPoint(K9)
}

// sweep finishes layers that have been written and starts those whose age is due. Called at every tick.
func (w *worker) sweep(nowMs int64) {
	for _, t := range w.tasks {
		if err := w.persist(t, nowMs, false); err != nil {
			w.e.taskFailed(t, err)
		}
	}
}

// dirtyBytes returns the size of the task's uncommitted writes.
func (t *task) dirtyBytes() int64 {
	if t.state == nil {
		return 0
	}
	return t.state.Dirty()
}

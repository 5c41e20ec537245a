package engine

import (
	"sync/atomic"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
)

// exposed is what readers see of a task: its state as of its last commit (step 7), or while it restores, of the commit
// that the state it restores from is of.
type exposed struct {
	rows  *store.Reading
	meta  query.Meta
	stale *staleness // nil for a task that runs
}

// expose publishes the task's state as of its last commit, made at a watermark and a time. The worker calls it after step 6,
// and when it adopts the task.
func (t *task) expose(w, time int64) {
	if t.state != nil {
		t.public.Store(&exposed{rows: t.state.Publish(t.seq), meta: t.commitMeta(w, time)})
		t.bell.ring()
	}
}

// exposeDisk publishes the same commit once its layer has reached the database, so that readers let go of the layer.
func (t *task) exposeDisk() {
	if last := t.public.Load(); last != nil {
		t.public.Store(&exposed{rows: t.state.Publish(t.seq), meta: last.meta})
	}
}

// hide ends all reads of the task: it is being closed.
func (t *task) hide() {
	t.public.Store(nil)
	t.bell.ring()
}

// commitMeta says what the task's last commit reflects.
func (t *task) commitMeta(w, time int64) query.Meta {
	m := query.Meta{Task: query.Task{Sub: t.sub.id, Partition: t.id.Partition}, Seq: t.seq, Watermark: query.NoWatermark, Time: time}
	if t.sub.Timed {
		m.Watermark = w
	}
	for _, in := range t.inputs {
		if !in.internal && in.committed > 0 {
			m.Inputs = append(m.Inputs, query.Point{Name: in.topic, Partition: in.partition, Number: in.committed - 1})
		}
	}
	if m.Seq > 0 {
		m.Position = query.Position{{Name: m.Task.Sub, Partition: m.Task.Partition, Commit: true, Number: int64(m.Seq)}}
	}
	if len(m.Inputs) > 1 {
		m.Inputs = query.Position(nil).Merge(m.Inputs)
	}
	return m
}

// bell wakes everybody who waits for a task to publish something. A task that nobody waits for pays one load.
type bell struct{ waiting atomic.Pointer[chan struct{}] }

// wait returns a channel that is closed at the next ring.
func (b *bell) wait() <-chan struct{} {
	for {
		if c := b.waiting.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if b.waiting.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

func (b *bell) ring() {
	if b.waiting.Load() == nil {
		return
	}
	if c := b.waiting.Swap(nil); c != nil {
		close(*c)
	}
}

package engine

import (
	"fmt"
	"sync/atomic"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// TaskState is the stage of life of a task.
type TaskState int32

// The states of a task. Closed is final: a task that comes back is a new one.
const (
	Opening TaskState = iota // fencing, stable fetch, restore, verification
	Running                  // owned by a worker
	Closing                  // revoked or stopping: commits what it has, then closes
	Closed
)

func (s TaskState) String() string {
	return [...]string{"opening", "running", "closing", "closed"}[s]
}

// task is one sub-topology on one partition, from an assignment until it is lost.
type task struct {
	id     processor.TaskID
	sub    *sub
	lease  lease
	inputs []*input
	worker *worker
	phase  atomic.Int32 // TaskState

	cancel func()        // ends opening
	waited bool          // what does not verify has not done so for a while
	closed chan struct{} // closed when the database is released

	// The opener's until the task runs, then the worker's.
	db        store.DB
	state     *store.State
	base      store.DB // of state: what its layers are written to, and checkpoints made of
	kept      keeping
	public    atomic.Pointer[exposed] // what readers see; nil: nothing
	bell      bell
	hub       hub
	proc      *processor.Task
	seq       uint64 // of the last commit
	ends      []int64
	out       output
	lastW     int64 // watermark and wall clock of the commit it was opened at
	lastTime  int64
	clocks    []byte                // its event time as of the last commit, see processor.Task.AppendClocks
	told      []watermark.Broadcast // what it has announced, per announcing sink, as of the last commit
	counted   []processor.Counters  // what of its operators' counters is in a seal
	outgoing  []processor.Outgoing  // reused
	marks     []processor.Watermark // reused
	trims     []changelog.Trim      // by changelog, as of the last commit
	trimmedTo []int64               // by changelog: what the purger was told
	standing  []standing            // by operator with a watermark
	shown     atomic.Pointer[[]Watermark]
	poison    map[topicPartition]poisoned
	sealed    int64         // bytes of state in the sealed generation
	growth    float64       // see dirtyBytes; 0: not known yet
	holdsBack bool          // in its last slice, records waited for those of other partitions
	dirty     bool          // something to commit: processed records, or moved positions
	first     bool          // nothing committed yet by this task object
	checkedBy *producer     // the incarnation whose open transactions were looked for
	lastSeq   atomic.Uint64 // seq, for other goroutines
	memory    taskMemory
	writing   *writing // a committed layer on its way to the database, nil without one
	damaged   bool     // the database must be set aside when it is closed
}

// taskMemory is what a task's state holds, in bytes, as of the last tick: for the monitor.
type taskMemory struct{ views, overlay, layer atomic.Int64 }

// poisoned is a record that failed after it had left effects behind: it is met again after the abort and
// then goes to its policy without being processed.
type poisoned struct {
	offset int64
	err    *RecordError
}

func (t *task) String() string { return t.id.String() }

// build makes the operators of the task anew over its state: at open and after every abort.
func (t *task) build() error {
	if t.proc != nil {
		if err := t.proc.Close(); err != nil {
			return fmt.Errorf("tidemark: task %s: close processors: %w", t, err)
		}
		t.proc = nil
	}
	w := t.worker
	proc, err := t.sub.NewTask(processor.Env{
		Task:   t.id,
		Output: &t.out,
		State:  t.state,
		Clocks: t.clocks,
		Now:    func() int64 { return w.e.cfg.Clock.Now().UnixMilli() },
	})
	if err != nil {
		return fmt.Errorf("tidemark: task %s: build operators: %w", t, err)
	}
	t.proc, t.counted = proc, nil
	if !t.sub.Timed {
		return nil
	}
	if t.told == nil {
		t.told = make([]watermark.Broadcast, len(proc.Outgoing(nil)))
	}
	for _, in := range t.inputs {
		in.wasIdle.Store(proc.WasIdle(in.source))
		in.unseen.Store(proc.Unseen(in.source))
	}
	proc.Start(w.e.steady())
	return nil
}

// pick returns the input whose head record comes first in event time, or nil when there is nothing to do.
// An empty queue counts as empty only when its position has reached the end that a fetch has shown; else the
// task waits for it, at most the given idle time.
func (t *task) pick(now, maxIdle int64) *input {
	if len(t.inputs) == 1 {
		if t.inputs[0].head() == nil {
			return nil
		}
		return t.inputs[0]
	}
	var best *input
	var bestMs int64
	waiting := false
	for _, in := range t.inputs {
		r := in.head()
		if r == nil {
			if in.position < in.end.Load() {
				if in.waitSince == 0 {
					in.waitSince = now
				}
				waiting = waiting || now-in.waitSince < maxIdle
			}
			continue
		}
		in.waitSince = 0
		if r.Attrs.IsControl() || in.isControl(r) {
			return in
		}
		if t.proc.TooFarAhead(in.source) {
			t.worker.ahead.Store(true)
			t.holdsBack = true
			continue // the others catch up first
		}
		if ms := r.Timestamp.UnixMilli(); best == nil || ms < bestMs {
			best, bestMs = in, ms
		}
	}
	if waiting {
		t.holdsBack = t.holdsBack || best != nil
		return nil
	}
	return best
}

// progress is the record that stands for the next commit.
func (t *task) progress(writer uint64, now int64) *changelog.Progress {
	p := &changelog.Progress{Seq: t.seq + 1, Writer: writer, Time: now, W: changelog.NoWatermark, TopicIDs: t.sub.ids}
	if t.sub.Timed {
		p.W = t.eventTime()
		p.SetSection(changelog.SectionClocks, t.proc.AppendClocks(nil))
	}
	for _, in := range t.inputs {
		p.Offsets = append(p.Offsets, changelog.TopicOffset{Topic: in.topic, Partition: in.partition, Offset: in.position})
	}
	for i, c := range t.sub.changelogs {
		p.Ends = append(p.Ends, changelog.StoreEnd{Store: t.sub.Stores[c.store].ID, End: t.ends[i]})
	}
	return p
}

package watermark

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrWriter marks a control record of a writer that the vector was not made
// for: one that the topology no longer has, whose records are still in the
// topic, or one of another topology. The vector is as it was.
var ErrWriter = errors.New("unknown writer")

// Vector is what one partition of a repartition topic has said about the tasks
// that write to it. Its watermark is Unknown until every writer, and every task
// of every writer, has been heard of.
type Vector struct {
	writers []upstream
	w       int64
	idle    bool
}

// upstream is one writer: len(tasks) is the highest number of tasks it claimed.
type upstream struct {
	id    uint32
	tasks []report
}

// report is the newest that is known about a task.
type report struct {
	heard      bool
	state      State
	w          int64
	generation uint64
	seq        uint64
}

// NewVector returns the vector of an input that these writers write to (WriterID).
func NewVector(writers ...uint32) *Vector {
	v := &Vector{w: Unknown}
	for _, id := range writers {
		v.writers = append(v.writers, upstream{id: id})
	}
	v.update()
	return v
}

// CopyFrom makes v equal to o, without sharing memory.
func (v *Vector) CopyFrom(o *Vector) {
	v.w, v.idle = o.w, o.idle
	v.writers = slices.Grow(v.writers[:0], len(o.writers))[:len(o.writers)]
	for i := range o.writers {
		from, to := &o.writers[i], &v.writers[i]
		to.id, to.tasks = from.id, append(to.tasks[:0], from.tasks...)
	}
}

// Apply takes in a control record. Records that this build does not know change
// nothing. The error is ErrWriter, or ErrControl for an entry of a task beyond
// the number of tasks.
//
// A higher number of tasks holds W where it is until the new tasks are heard
// of. What is older than the newest known about a task, by generation and then
// by seq, is ignored: it comes from a writer that did not know it had lost the
// task.
func (v *Vector) Apply(c *Control) error {
	if !c.Known() {
		return nil
	}
	i := slices.IndexFunc(v.writers, func(u upstream) bool { return u.id == c.Writer })
	if i < 0 {
		return fmt.Errorf("watermark: apply a record of writer %08x: %w", c.Writer, ErrWriter)
	}
	for k := range c.Entries {
		if c.Entries[k].Task >= c.Tasks {
			return fmt.Errorf("watermark: apply a record of writer %08x: task %d of %d: %w", c.Writer, c.Entries[k].Task, c.Tasks, ErrControl)
		}
	}
	u := &v.writers[i]
	if n := int(c.Tasks); n > len(u.tasks) {
		u.tasks = append(u.tasks, make([]report, n-len(u.tasks))...)
	}
	for k := range c.Entries {
		e := &c.Entries[k]
		u.tasks[e.Task].take(e, c.Generation)
	}
	v.update()
	return nil
}

func (r *report) take(e *Entry, generation uint64) {
	if !r.heard {
		*r = report{heard: true, w: Unknown}
	} else if generation < r.generation || generation == r.generation && e.Seq < r.seq {
		return
	}
	r.state, r.generation, r.seq = e.State, generation, e.Seq
	r.w = max(r.w, e.W)
}

// update derives w and idle from the reports. Tasks that are done are left out,
// like finished inputs in Combine.
func (v *Vector) update() {
	least := int64(Finished)
	active, idle := false, len(v.writers) == 0
	for i := range v.writers {
		tasks := v.writers[i].tasks
		if len(tasks) == 0 {
			v.idle = false
			return
		}
		for k := range tasks {
			r := &tasks[k]
			switch {
			case !r.heard:
				v.idle = false
				return
			case r.state == Active:
				active = true
				least = min(least, r.w)
			case r.state == Idle:
				idle = true
			}
		}
	}
	if v.idle = idle && !active; !v.idle {
		v.w = max(v.w, least)
	}
}

// Watermark returns W and whether the input is idle: all tasks are idle or
// done, and not all done. W keeps its value then. It is Finished when all tasks
// are done.
func (v *Vector) Watermark() (w int64, idle bool) { return v.w, v.idle }

// Max returns the highest watermark of any task that is not done, and at least
// W; Unknown for none. It is what to give Combine as the W of an idle input
// under AdvanceToMax, so that the order in which upstream tasks fell silent
// makes no difference.
func (v *Vector) Max() int64 {
	top := v.w
	for _, e := range v.Entries() {
		if e.State != Done {
			top = max(top, e.W)
		}
	}
	return top
}

// Entries yields the writer and the newest entry of every task heard of, in the
// order of the writers and of the tasks.
func (v *Vector) Entries() iter.Seq2[uint32, Entry] {
	return func(yield func(uint32, Entry) bool) {
		for i := range v.writers {
			for k := range v.writers[i].tasks {
				r := &v.writers[i].tasks[k]
				if r.heard && !yield(v.writers[i].id, Entry{uint32(k), r.state, r.w, r.seq}) {
					return
				}
			}
		}
	}
}

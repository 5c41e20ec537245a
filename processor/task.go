package processor

import (
	"errors"
	"fmt"
)

// Task is the running form of one sub-topology on one partition. It belongs to one goroutine. After an abort it is
// closed and a new one is built over the same State, once that is rolled back.
type Task struct {
	c       *Context
	sources []Source
	flushes []func() error
	closes  []func() error
	idle    Record // stands in for the input record while Flush runs
}

// Source is the entry of a task for one source of its sub-topology.
type Source func(c *Context) error

// Builder assembles a Task.
type Builder struct{ t *Task }

// NewBuilder starts a task.
func NewBuilder(env Env) *Builder {
	t := &Task{c: &Context{env: env, out: env.Output}}
	t.idle = Record{Partition: env.Task.Partition, Offset: -1}
	t.c.rec = &t.idle
	return &Builder{t}
}

// Context returns the context that the operators of the task share.
func (b *Builder) Context() *Context { return b.t.c }

// Env returns the environment the task is built for.
func (b *Builder) Env() Env { return b.t.c.env }

// Op registers an operator under its name and returns its index.
func (b *Builder) Op(name string) Op {
	b.t.c.operators = append(b.t.c.operators, name)
	return Op(len(b.t.c.operators) - 1)
}

// Source appends the entry of the next source.
func (b *Builder) Source(s Source) { b.t.sources = append(b.t.sources, s) }

// OnFlush appends what Flush does; the calls run in this order.
func (b *Builder) OnFlush(f func() error) { b.t.flushes = append(b.t.flushes, f) }

// OnClose appends what Close does.
func (b *Builder) OnClose(f func() error) { b.t.closes = append(b.t.closes, f) }

// Task returns the finished task.
func (b *Builder) Task() *Task { return b.t }

// Process runs one record through the task. source is the index in the sub-topology's sources. An *Error says that the
// record itself is at fault (see Error); any other error comes from the state or the output. After an error the record
// may have left effects behind, which Effects shows.
func (t *Task) Process(source int, r *Record) (err error) {
	c := t.c
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(p)
		}
	}()
	c.rec, c.time, c.headers = r, r.Time, r.Headers
	c.key, c.keyShared = r.Key, false
	c.value, c.raw = r.Value, true
	c.broken, c.emitErr = nil, nil
	return t.sources[source](c)
}

// Flush emits what operators held back since the last Flush, in topological order: a downstream aggregate of the task
// has seen everything before it emits itself. It is called at the commit, before the state is sealed. An error, also an
// *Error, belongs to no input record: what was held back is lost, and the caller aborts.
func (t *Task) Flush() (err error) {
	c := t.c
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(p)
		}
	}()
	for _, f := range t.flushes {
		c.rec, c.headers, c.broken, c.emitErr = &t.idle, nil, nil, nil
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Effects returns a counter that moves with every state write and every Send.
func (t *Task) Effects() uint64 { return t.c.effects }

// Dropped returns how many records the topology told the task to drop: those no branch of a Split with Drop took.
func (t *Task) Dropped() uint64 { return t.c.dropped }

// Close closes the custom processors. The state is the caller's. Errors and panics of all of them are joined.
func (t *Task) Close() error {
	var errs []error
	for _, f := range t.closes {
		errs = append(errs, closeOne(f))
	}
	t.closes = nil
	return errors.Join(errs...)
}

func closeOne(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("processor: close: panic: %v", p)
		}
	}()
	return f()
}

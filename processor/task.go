package processor

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/watermark"
)

// Task is the running form of one sub-topology on one partition. It belongs to one goroutine. After an abort it is
// closed and a new one is built over the same State, once that is rolled back.
type Task struct {
	c       *Context
	sources []Source
	flushes []func() error
	closes  []func() error
	idle    Record // stands in for the input record where none is at hand

	clocks    []*Clock // by source; nil where nothing asks for the time
	nodes     []*Node  // in topological order
	announce  []announced
	tickers   []ticks // operators without a watermark that do something when processing time passes
	moved     bool
	left      budget // of the Advance in hand
	started   int64  // processing time at Start
	now       int64  // processing time as of the last Tick or SetNow
	nextTick  int64
	elsewhere int64 // see AlignTo
}

// Source is the entry of a task for one source of its sub-topology.
type Source func(c *Context) error

// Builder assembles a Task.
type Builder struct{ t *Task }

// NewBuilder starts a task.
func NewBuilder(env Env) *Builder {
	t := &Task{c: &Context{env: env, out: env.Output}, nextTick: math.MaxInt64, elsewhere: math.MaxInt64}
	t.idle = Record{Partition: env.Task.Partition, Offset: -1}
	t.c.rec, t.c.task = &t.idle, t
	return &Builder{t}
}

// Context returns the context that the operators of the task share.
func (b *Builder) Context() *Context { return b.t.c }

// Env returns the environment the task is built for.
func (b *Builder) Env() Env { return b.t.c.env }

// Op registers an operator under its name and returns its index.
func (b *Builder) Op(name string) Op {
	b.t.c.operators = append(b.t.c.operators, name)
	b.t.c.counters = append(b.t.c.counters, Counters{})
	return Op(len(b.t.c.operators) - 1)
}

// Source appends the entry of the next source. Its clock is nil if nothing behind it asks for the time.
func (b *Builder) Source(s Source, clock *Clock) {
	b.t.sources = append(b.t.sources, s)
	b.t.clocks = append(b.t.clocks, clock)
	if clock != nil {
		clock.start(b.t.c)
	}
}

// Node appends an operator that has a watermark, in topological order.
func (b *Builder) Node(n *Node) { b.t.nodes = append(b.t.nodes, n) }

// Announce says that the task tells the readers of a repartition sink how far the node has got.
func (b *Builder) Announce(sink int, n *Node) {
	b.t.announce = append(b.t.announce, announced{sink, n})
}

// OnFlush appends what Flush does; the calls run in this order.
func (b *Builder) OnFlush(f func() error) { b.t.flushes = append(b.t.flushes, f) }

// OnClose appends what Close does.
func (b *Builder) OnClose(f func() error) { b.t.closes = append(b.t.closes, f) }

// Task returns the finished task.
func (b *Builder) Task() *Task { return b.t }

// Restore gives the finished task the event time of Env.Clocks.
func (b *Builder) Restore() error { return b.t.restoreClocks(b.t.c.env.Clocks) }

// Process runs one record through the task. source is the index in the sub-topology's sources. An *Error says that the
// record itself is at fault (see Error); any other error comes from the state or the output. After an error the record
// may have left effects behind, which Effects shows. The record is judged by the watermarks as they are; it moves those of
// its source afterwards, and when Moved says so, Advance comes before the next record.
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
	c.broken, c.emitErr, c.unobserved, c.change, c.origin = nil, nil, false, 0, watermark.Unknown
	k := t.clocks[source]
	if k == nil || k.gen == nil {
		return t.sources[source](c)
	}
	c.origin = k.mark.W
	if k.mark.Idle {
		k.mark.Idle = false
		t.moved = true
	}
	if err := t.sources[source](c); err != nil {
		return err
	}
	if !c.unobserved && k.observe(c) {
		t.moved = true
	}
	return nil
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
	if err := t.Pause(); err != nil {
		return err
	}
	for _, f := range t.flushes {
		c.between(t)
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
	for _, n := range t.nodes {
		if n.work != nil {
			errs = append(errs, closeOne(n.work.close))
		}
	}
	for _, f := range t.closes {
		errs = append(errs, closeOne(f))
	}
	t.closes, t.nodes = nil, nil
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

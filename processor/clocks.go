package processor

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/watermark"
)

// Mark is the watermark at one place of a task: behind a source or behind an operator.
type Mark = watermark.Input

// Clock is the event time of one source: how far it has got, and how that is known.
type Clock struct {
	// Name is the topic, or the operator id of a repartition: what persisted time is found by.
	Name string
	// Settings are those of a topic; nil for a repartition and for a source nothing asks for the time.
	Settings *watermark.Settings
	// Writers are the ids of the sub-topologies that write a repartition topic; nil else.
	Writers []uint32

	mark    Mark
	seen    int64 // highest event time accepted, watermark.Unknown before the first
	wasIdle bool  // it was idle at the commit the task was restored from
	gen     watermark.Generator
	vec     *watermark.Vector
	rec     watermark.Record
	fwd     headerLookup
}

// headerLookup finds headers of the record in hand without an allocation per record.
type headerLookup struct{ c *Context }

func (h headerLookup) find(key string) ([]byte, bool) {
	for i := len(h.c.rec.Headers) - 1; i >= 0; i-- {
		if h.c.rec.Headers[i].Key == key {
			return h.c.rec.Headers[i].Value, true
		}
	}
	return nil, false
}

// Mark returns where operators find the source's watermark.
func (k *Clock) Mark() *Mark { return &k.mark }

// Watermark returns the source's watermark.
func (k *Clock) Watermark() int64 { return k.mark.W }

// start gives the clock its generator or vector.
func (k *Clock) start(c *Context) {
	k.mark.W, k.mark.Seen, k.seen = watermark.Unknown, watermark.Unknown, watermark.Unknown
	switch {
	case k.Settings != nil:
		k.gen = k.Settings.New()
		k.mark.W, k.mark.Max = k.gen.Watermark(), k.Settings.Max
		k.fwd = headerLookup{c}
		k.rec.Header = k.fwd.find
	case len(k.Writers) > 0:
		k.vec = watermark.NewVector(k.Writers...)
	}
}

// observe moves the generator past the record in hand and reports whether the watermark has moved.
func (k *Clock) observe(c *Context) bool {
	k.rec.Time, k.rec.Appended, k.rec.Value = c.time, c.rec.Time, c.observed
	k.gen.Observe(&k.rec)
	c.observed, k.rec.Value = nil, nil
	k.seen = max(k.seen, c.time)
	if w := k.gen.Watermark(); w > k.mark.W {
		k.mark.W = w
		return true
	}
	return false
}

// fires is an operator that does something when its watermark moves.
type fires interface {
	// due returns the earliest time at which there is something to do, MaxInt64 for never.
	due() int64
	// advance does what is due up to w, in the order of time. It stops when the budget is used up, and goes on from there
	// when it is called again with the same w.
	advance(c *Context, w int64, b *budget) (done bool, err error)
	// cursor appends how far an advance has got that is not done; resume takes it back.
	cursor(dst []byte) []byte
	resume(b []byte) error
	// pause closes what an advance that is not done holds open in the state, and close everything.
	pause() error
	close() error
}

// ticks is an operator that does something when processing time passes.
type ticks interface {
	// tick does what is due at now, in ms, and returns when there is something to do next, MaxInt64 for never.
	tick(c *Context, now int64) (next int64, err error)
}

// budget is how many firings an advance may still carry out.
type budget struct{ left int }

// take uses up one firing and reports whether there was one left.
func (b *budget) take() bool {
	b.left--
	return b.left >= 0
}

// Node is an operator with a watermark of its own: the minimum over its inputs that are not idle, never falling.
type Node struct {
	op     Op
	inputs []*Mark
	all    watermark.AllIdle
	delay  int64 // for AllIdle with the clock: how far behind it the watermark stays
	work   fires
	ticks  ticks
	hold   *int64 // earliest time held back, if the operator may hold its watermark
	w      int64  // everything up to here has been done
	again  bool   // there is more to do without a move of the watermark
	target int64  // the inputs are here; above w while an advance is not done
	idle   bool
	out    Mark // what follows sees
	args   []Mark
}

// NewNode returns the node of an operator over the watermarks of what it reads. Builder.Node adds it to the task, in
// topological order.
func NewNode(op Op, inputs []*Mark, settings []*watermark.Settings) *Node {
	n := &Node{op: op, inputs: inputs, w: watermark.Unknown, target: watermark.Unknown, args: make([]Mark, len(inputs))}
	n.out.W, n.out.Seen = watermark.Unknown, watermark.Unknown
	for _, s := range settings {
		n.all = max(n.all, s.AllIdle)
		n.delay = max(n.delay, s.Delay.Milliseconds())
	}
	return n
}

// Mark returns where operators behind this one find its watermark.
func (n *Node) Mark() *Mark { return &n.out }

// Watermark returns what records at this operator are judged by.
func (n *Node) Watermark() int64 { return n.w }

// reach computes where the inputs are.
func (n *Node) reach(now int64) (w int64, idle bool) {
	if len(n.inputs) == 1 && !n.inputs[0].Idle {
		return max(n.target, n.inputs[0].W), false
	}
	for i, in := range n.inputs {
		n.args[i] = *in
		if in.Idle {
			n.args[i].W = max(in.W, in.Seen) // of an idle repartition the highest of its writers, which AdvanceToMax takes
		}
	}
	return watermark.Combine(n.target, n.args, n.all, now, n.delay)
}

// publish sets what operators behind the node see.
func (n *Node) publish() {
	w := n.w
	if n.hold != nil && *n.hold <= w {
		w = *n.hold - 1
	}
	n.out.Idle = n.idle
	n.out.W = max(n.out.W, w)
	for _, in := range n.inputs {
		n.out.Seen = max(n.out.Seen, in.Seen)
	}
}

// Moved reports whether the watermark of a source or its idleness has changed since the last Advance was done: Advance
// has work. The next record must wait for it.
func (t *Task) Moved() bool { return t.moved }

// Advance brings every operator to the watermark of the sources, in topological order: what an operator emits because of
// a watermark reaches what follows before the watermark does. It carries out at most so many firings and reports whether
// it is done. In between the caller may commit, but processes no record. Errors are those of Process; an *Error belongs
// to no input record.
func (t *Task) Advance(firings int) (done bool, err error) {
	c := t.c
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(p)
		}
	}()
	c.between(t)
	t.left = budget{firings}
	for _, n := range t.nodes {
		n.target, n.idle = n.reach(t.now)
		if n.idle && n.all == watermark.AdvanceWithClock {
			t.wake(t.now) // from now on it goes on with the clock
		}
		if n.target > n.w || n.again {
			if n.work != nil && n.work.due() <= n.target {
				done, err := n.work.advance(c, n.target, &t.left)
				if err != nil || !done {
					return false, err
				}
			}
			n.w, n.again = n.target, false
		}
		n.publish()
	}
	t.moved = false
	return true, nil
}

// Start tells the task the processing time at which it begins. The first Tick comes soon after.
func (t *Task) Start(now int64) { t.now, t.started, t.nextTick = now, now, now }

// SetNow tells the task the processing time in ms before it processes records, so that what they set is due a while from
// now and not from the last Tick. What is due waits for Tick. A time before the last one counts as that.
func (t *Task) SetNow(now int64) { t.now = max(t.now, now) }

// Pause closes what an Advance that is not done holds open in the state. Flush does it; who rolls the state back calls it
// before.
func (t *Task) Pause() error {
	for _, n := range t.nodes {
		if n.work == nil {
			continue
		}
		if err := n.work.pause(); err != nil {
			return t.c.stateError(n.op, err)
		}
	}
	return nil
}

// Tick lets operators do what is due at the processing time now, in ms. A time before that of the last Tick counts as
// that. The caller calls it before every Flush and when NextTick says so.
func (t *Task) Tick(now int64) (err error) {
	c := t.c
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(p)
		}
	}()
	now = max(now, t.now)
	t.now = now
	t.nextTick = math.MaxInt64
	for _, n := range t.nodes {
		if n.ticks == nil {
			continue
		}
		c.between(t)
		next, err := n.ticks.tick(c, now)
		if err != nil {
			return err
		}
		t.nextTick = min(t.nextTick, next)
	}
	for _, o := range t.tickers {
		c.between(t)
		next, err := o.tick(c, now)
		if err != nil {
			return err
		}
		t.nextTick = min(t.nextTick, next)
	}
	for _, n := range t.nodes {
		if n.all == watermark.AdvanceWithClock && n.idle {
			t.moved = true
			t.wake(now)
		}
	}
	return nil
}

// NextTick returns the processing time in ms at which Tick has something to do, MaxInt64 for never.
func (t *Task) NextTick() int64 { return t.nextTick }

// wake makes Tick come at the given time at the latest.
func (t *Task) wake(at int64) { t.nextTick = min(t.nextTick, at) }

// SetIdle says that a source is silent and its operators need not wait for it. The next record ends that. It does nothing
// for a repartition, which learns of it from its writers.
func (t *Task) SetIdle(source int) {
	k := t.clocks[source]
	if k == nil || k.gen == nil || k.mark.Idle {
		return
	}
	k.mark.Idle = true
	t.moved = true
}

// WasIdle reports whether a source was idle at the commit the task was restored from.
func (t *Task) WasIdle(source int) bool {
	return t.clocks[source] != nil && t.clocks[source].wasIdle
}

// Unseen reports whether no record of a source was ever processed, before a restart included.
func (t *Task) Unseen(source int) bool {
	return t.clocks[source] != nil && t.clocks[source].seen == watermark.Unknown
}

// Idle reports whether a source is idle.
func (t *Task) Idle(source int) bool { return t.clocks[source] != nil && t.clocks[source].mark.Idle }

// Control takes a control record of a repartition. An error means that the record cannot be understood.
func (t *Task) Control(source int, value []byte) error {
	k := t.clocks[source]
	ctl, err := watermark.ParseControl(value)
	if err != nil {
		return fmt.Errorf("processor: control record: %w", err)
	}
	if k == nil || k.vec == nil || !ctl.Known() {
		return nil
	}
	if err := k.vec.Apply(ctl); err != nil {
		if errors.Is(err, watermark.ErrWriter) {
			return nil // of an operator the topology no longer has
		}
		return fmt.Errorf("processor: control record: %w", err)
	}
	w, idle := k.vec.Watermark()
	if w > k.mark.W || idle != k.mark.Idle {
		k.mark.W, k.mark.Idle = max(w, k.mark.W), idle
		t.moved = true
	}
	if k.mark.Idle {
		k.mark.Seen = k.vec.Max()
	}
	return nil
}

// Outgoing is the watermark a task announces in a repartition topic.
type Outgoing struct {
	Sink  int // index in the sub-topology's sinks
	W     int64
	State watermark.State
}

// Outgoing appends what the task has to announce, one entry per repartition sink that somebody reads the time of.
func (t *Task) Outgoing(dst []Outgoing) []Outgoing {
	for _, s := range t.announce {
		dst = append(dst, Outgoing{s.sink, s.node.w, s.node.state()})
	}
	return dst
}

// Watermark is the event time of one operator.
type Watermark struct {
	Operator string
	W        int64 // watermark.Unknown before the first
	Idle     bool  // every input of it is idle
	Holder   Holder
}

// Holder is the input that keeps a watermark where it is.
type Holder struct {
	Source string // topic or repartition; empty if no input does
	Writer uint32 // of a repartition: the upstream task
	Task   int32  // -1 for a topic
	W      int64
	Heard  bool // false: the upstream task has not been heard from
}

// Watermarks appends the watermark of every operator that has one and what holds it.
func (t *Task) Watermarks(dst []Watermark) []Watermark {
	for _, n := range t.nodes {
		w := Watermark{Operator: t.c.operators[n.op], W: n.w, Idle: n.idle, Holder: Holder{Task: -1}}
		var low *Clock
		for _, in := range n.inputs {
			for _, k := range t.clocks {
				if k != nil && in == &k.mark && !in.Idle && (low == nil || in.W < low.mark.W) {
					low = k
				}
			}
		}
		if low != nil {
			w.Holder = Holder{Source: low.Name, Task: -1, W: low.mark.W, Heard: true}
			if low.vec != nil {
				if h, ok := low.vec.Holder(); ok {
					w.Holder.Writer, w.Holder.Task, w.Holder.Heard = h.Writer, int32(h.Task), h.Heard
				}
			}
		}
		dst = append(dst, w)
	}
	return dst
}

// AlignTo tells the task the lowest watermark of sources, its own included, that it must not be too far ahead of. Unknown
// means that one of them has records to read and no watermark yet.
func (t *Task) AlignTo(low int64) { t.elsewhere = low }

// Reached returns the watermark of a source and whether it is idle.
func (t *Task) Reached(source int) (w int64, idle bool) {
	k := t.clocks[source]
	if k == nil {
		return watermark.Unknown, false
	}
	return k.mark.W, k.mark.Idle
}

// TooFarAhead reports whether a source's watermark is more than its MaxDrift ahead of the slowest source of the task that
// is not idle, or of what AlignTo has said: its records wait, so that what windows hold stays bounded while a backlog is
// read.
func (t *Task) TooFarAhead(source int) bool {
	k := t.clocks[source]
	if k == nil || k.gen == nil || k.Settings.MaxDrift < 0 {
		return false
	}
	low := min(k.mark.W, t.elsewhere)
	if len(t.clocks) > 1 {
		for _, o := range t.clocks {
			if o != nil && o.gen != nil && !o.mark.Idle {
				low = min(low, o.mark.W)
			}
		}
	}
	if t.elsewhere == watermark.Unknown {
		return k.mark.W != watermark.Unknown
	}
	return low != watermark.Unknown && k.mark.W > satAdd(low, k.Settings.MaxDrift.Milliseconds())
}

// state is what a node is for the tasks behind it. One whose watermark the clock moves is active: the clock speaks for
// its inputs, and nothing else would move the watermarks behind it.
func (n *Node) state() watermark.State {
	switch {
	case n.w == watermark.Finished:
		return watermark.Done
	case n.idle && n.all != watermark.AdvanceWithClock:
		return watermark.Idle
	}
	return watermark.Active
}

type announced struct {
	sink int
	node *Node
}

// between prepares the context for work that no record causes.
func (c *Context) between(t *Task) {
	c.rec, c.headers, c.broken, c.emitErr = &t.idle, nil, nil, nil
	c.key, c.keyShared, c.value, c.raw, c.change = nil, false, nil, false, 0
}

// satAdd adds without overflow.
func satAdd(a, b int64) int64 {
	s := a + b
	if b >= 0 && s < a {
		return math.MaxInt64
	}
	if b < 0 && s > a {
		return math.MinInt64
	}
	return s
}

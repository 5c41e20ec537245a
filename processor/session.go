package processor

import (
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// sessions is an aggregate over sessions: rows of key and span, which never overlap for a key. A session that is closed
// is remembered for another gap (window.Config.Forgotten), so that a record which would join it is refused.
type sessions[K, V, A any] struct {
	WindowedConfig[K, V, A]
	shower shower[K, A]
	view   *store.SessionView[cell[A]]
	spans  []store.Span
	gone   []goneSession[A]
	armed  deadlines
	rearm  bool

	started bool
	fire    dueSessions[A] // those whose end the watermark reaches
	shut    dueSessions[A] // those it closes
	forget  dueSessions[A] // those whose rows can go
}

// goneSession is a session that was shown and has become part of another one.
type goneSession[A any] struct {
	span    window.Bounds
	maxTime int64
	last    A
}

func newSessions[K, V, A any](s *store.State, a WindowedConfig[K, V, A]) (Func[K, V], error) {
	view, err := store.SessionViewOf(s, a.Store, codec.Codec[cell[A]](a.codec()))
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	o := &sessions[K, V, A]{WindowedConfig: a, shower: a.shower(), view: view}
	a.Node.work = o
	if a.Window.Clocked() {
		a.Node.ticks = o
		o.rearm = true
	}
	return o.process, nil
}

// process folds a record into the session it belongs to, which it may begin, extend, or make of several.
func (o *sessions[K, V, A]) process(c *Context, k K, v V) error {
	n := &c.counters[o.Op]
	n.In++
	if c.key == nil {
		return c.fail(o.Op, StageNullKey, ErrNull)
	}
	w := o.Node.w
	b := o.Window.Window.Proto(c.time)
	var err error
	if o.spans, err = o.view.Overlapping(o.spans[:0], c.key, store.Span(b)); err != nil {
		return c.stateError(o.Op, err)
	}
	for _, s := range o.spans {
		b = b.Union(window.Bounds(s))
	}
	if why, of := o.refuses(c, b, w); why != window.Accepted {
		n.LateWindows++
		return c.refuse(o.Op, lateFor(o.Window, of, why, c.judge(o.Window, w)))
	}
	into, have, err := o.absorb(c, b, w)
	if err != nil {
		return err
	}
	d := o.Window.Add(&into.State, b, w, c.time)
	if d.Settled {
		if err := o.shower.settle(c, &into); err != nil {
			return err
		}
		have = have && o.Window.Mode != window.ModeDiscarding
	}
	c.op = o.Op
	if into.Acc, err = o.fold(c, k, into.Acc, have, v); err != nil {
		return c.fail(o.Op, StageUser, err)
	}
	var f firing[A]
	if d.Fire {
		if f, err = o.shower.fire(c, &into, b, d, w); err != nil {
			return err
		}
	}
	if d.Arm != window.ArmNone {
		into.At = o.arm(c, d.Arm, b)
	}
	n.Folded++
	if d.Late {
		n.LateAdmitted++
	}
	c.effects++
	if err := o.replace(c, b, into); err != nil {
		return err
	}
	a := c.setAside()
	for i := range o.gone {
		g := &o.gone[i]
		if err := o.shower.gone(c, k, g.span, g.maxTime, w, g.last); err != nil {
			return err
		}
	}
	if err := o.shower.emit(c, k, &f); err != nil {
		return err
	}
	c.restore(a)
	return nil
}

// refuses reports why a record cannot join the sessions it would, and which one says so.
func (o *sessions[K, V, A]) refuses(c *Context, b window.Bounds, w int64) (window.Reason, window.Bounds) {
	if o.Window.ByOrigin() {
		if why := o.Window.Refuses(b, c.origin); why != window.Accepted {
			return why, b
		}
	}
	if why := o.Window.Refuses(b, w); why != window.Accepted {
		return why, b
	}
	for _, s := range o.spans {
		if o.Window.Expired(window.Bounds(s), w) {
			return window.ReasonExpired, window.Bounds(s)
		}
	}
	if proto := o.Window.Window.Proto(c.time); o.Window.Forgets(proto, w) {
		return window.ReasonExpired, proto
	}
	return window.Accepted, b
}

// absorb returns the cell of the session b, made of those it absorbs, and whether it holds a value. Sessions that were
// shown are in gone.
func (o *sessions[K, V, A]) absorb(c *Context, b window.Bounds, w int64) (into cell[A], have bool, err error) {
	o.gone = o.gone[:0]
	for _, s := range o.spans {
		row, err := o.view.Row(c.key, s)
		if err != nil {
			return into, false, c.stateError(o.Op, err)
		}
		old := row.Value
		old.State.MaxTime = row.Time
		dirty := old.State.Flags&window.Dirty != 0
		if window.Bounds(s) == b {
			// The record lies inside: nothing is absorbed.
			return old, o.Window.Mode != window.ModeDiscarding || dirty, nil
		}
		a := o.Window.Merge(&into.State, b, &old.State, window.Bounds(s), w)
		if a.Settled {
			if err := o.shower.settle(c, &old); err != nil {
				return into, false, err
			}
		}
		if a.Emitted && o.Window.Mode != window.ModeDiscarding { // what was given away there is not taken back
			o.gone = append(o.gone, goneSession[A]{window.Bounds(s), row.Time, old.Last})
		}
		if o.Window.Mode == window.ModeDiscarding && (a.Settled || !dirty) {
			continue // what it held was given away
		}
		if !have {
			into.Acc, have = old.Acc, true
			continue
		}
		c.op = o.Op
		into.Acc = o.Merge(into.Acc, old.Acc)
	}
	return into, have, nil
}

// replace stores the session b in place of those it has absorbed.
func (o *sessions[K, V, A]) replace(c *Context, b window.Bounds, v cell[A]) (err error) {
	to := store.Span(b)
	switch {
	case len(o.spans) == 0:
		err = o.view.Put(c.key, to, v, v.State.MaxTime)
	case o.spans[0] == to:
		err = o.view.Put(c.key, to, v, v.State.MaxTime)
	default:
		for _, s := range o.spans[1:] {
			if err = o.view.Remove(c.key, s, c.time); err != nil {
				return c.stateError(o.Op, err)
			}
		}
		err = o.view.Move(c.key, o.spans[0], to, v, v.State.MaxTime)
	}
	if err != nil {
		return c.stateError(o.Op, err)
	}
	return nil
}

// arm sets the deadline of a session of the key in hand and returns it.
func (o *sessions[K, V, A]) arm(c *Context, kind window.Arm, b window.Bounds) int64 {
	at := o.Window.Deadline(kind, c.task.now)
	o.armed.add(at, armedWindow{bounds: b, key: append([]byte{}, c.key...), kind: kind})
	c.task.wake(at)
	return at
}

// tick implements ticks: it shows what is due. While an advance is interrupted nothing is, see windowed.tick.
func (o *sessions[K, V, A]) tick(c *Context, now int64) (int64, error) {
	if o.fire.done.ok || o.shut.done.ok {
		return now, nil
	}
	if o.rearm {
		o.rearm = false
		if err := o.findArmed(c, now); err != nil {
			return 0, err
		}
	}
	for o.armed.next() <= now {
		at, list := o.armed.pop()
		for _, w := range list {
			if err := o.showDue(c, at, w); err != nil {
				return 0, err
			}
		}
	}
	return o.armed.next(), nil
}

func (o *sessions[K, V, A]) showDue(c *Context, at int64, due armedWindow) error {
	w := o.Node.w
	row, err := o.view.Row(due.key, store.Span(due.bounds))
	if err != nil {
		return c.stateError(o.Op, err)
	}
	cell := row.Value
	if !row.Present || cell.At != 0 && cell.At != at {
		return nil // absorbed, or set anew since
	}
	cell.State.MaxTime = row.Time
	d := o.Window.OnDeadline(&cell.State, due.bounds, w, due.kind)
	if d.Settled {
		if err := o.shower.settle(c, &cell); err != nil {
			return err
		}
	}
	if !d.Fire {
		return nil
	}
	f, err := o.shower.fire(c, &cell, due.bounds, d, w)
	if err != nil {
		return err
	}
	cell.At = 0
	c.effects++
	if err := o.view.Put(due.key, store.Span(due.bounds), cell, cell.State.MaxTime); err != nil {
		return c.stateError(o.Op, err)
	}
	k, err := o.shower.keyOf(c, due.key)
	if err != nil {
		return err
	}
	return o.shower.emit(c, k, &f)
}

// findArmed sets the deadlines of stored sessions that hold something no pane has shown.
func (o *sessions[K, V, A]) findArmed(c *Context, now int64) error {
	all := o.view.Due(math.MinInt64)
	defer all.Close()
	for {
		key, s, ok, err := all.Next(math.MaxInt64)
		if err != nil {
			return c.stateError(o.Op, err)
		}
		if !ok {
			return nil
		}
		row, err := o.view.Row(key, s)
		if err != nil {
			return c.stateError(o.Op, err)
		}
		b := window.Bounds(s)
		if kind := o.Window.Rearm(row.Value.State, b, o.Node.w); kind != window.ArmNone {
			o.armed.add(o.Window.Deadline(kind, now), armedWindow{bounds: b, key: append([]byte{}, key...), kind: kind})
		}
	}
}

package processor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// WindowedConfig describes an aggregate over windows.
type WindowedConfig[K, V, A any] struct {
	Op     Op             // its operator
	Store  string         // id of its store
	Blocks string         // id of the store of merged slices, if it is kept by slices: see CanSlice
	Times  string         // id of the store of record times; sliding windows need it
	Node   *Node          // its watermark
	Window *window.Config // its windows, triggers and lateness
	Key    codec.Codec[K] // decodes the key for what follows a firing; nil if nothing there uses it
	Value  codec.Codec[A] // of results
	Step   Step[K, V, A]  // its function
	Merge  func(a, b A) A // nil if it cannot; sessions need it
	// Undo takes a value out again, for input that retracts; nil if it does not.
	Undo func(c *Context, k K, acc A, v V) (A, error)
	Next PaneFunc[K, A] // nil if nothing follows
}

func (a *WindowedConfig[K, V, A]) shower() shower[K, A] {
	return shower[K, A]{op: a.Op, cfg: a.Window, key: a.Key, value: a.Value, next: a.Next}
}

func (a *WindowedConfig[K, V, A]) codec() cellCodec[A] {
	return cellCodec[A]{a.Value, a.Window.Mode == window.ModeRetracting}
}

// NewWindowed returns the operator of an aggregate over windows.
func NewWindowed[K, V, A any](s *store.State, a WindowedConfig[K, V, A]) (Func[K, V], error) {
	switch a.Window.Window.Kind() {
	case window.KindSession:
		return newSessions(s, a)
	}
	if a.Blocks != "" {
		return newSliced(s, a)
	}
	o, err := openWindowed(s, a)
	if err != nil {
		return nil, err
	}
	if a.Window.Window.Kind() == window.KindSliding {
		return newSliding(s, o)
	}
	return o.process, nil
}

func openWindowed[K, V, A any](s *store.State, a WindowedConfig[K, V, A]) (*windowed[K, V, A], error) {
	view, err := store.WindowViewOf(s, a.Store, codec.Codec[cell[A]](a.codec()))
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	o := &windowed[K, V, A]{WindowedConfig: a, shower: a.shower(), view: view, next: math.MinInt64}
	a.Node.work = o
	if a.Window.Clocked() {
		a.Node.ticks = o
		o.rearm = true
	}
	return o, nil
}

// windowed is an aggregate over windows that do not depend on the records: one row per window and key. Rows lie in the
// order of their ends.
type windowed[K, V, A any] struct {
	WindowedConfig[K, V, A]
	shower shower[K, A]
	view   *store.WindowView[cell[A]]
	bounds []window.Bounds
	ends   []int64
	// next is the earliest time at which a window fires or closes; the smallest int64 says that it must be looked up.
	next int64
	// An advance that is not done has visited the windows up to the one that ends at atEnd, and of that one the keys up to
	// atKey, or all of them. It began at the node's watermark.
	pending, atAll bool
	atEnd          int64
	atKey          []byte
	rows           *store.Cursor[cell[A]] // of the window that ends at atEnd, nil while none is open
	armed          deadlines
	rearm          bool // the deadlines are to be found again
	// seed returns what a new window holds without the record in hand; it is nil if that is nothing.
	seed func(c *Context, b window.Bounds) (seed[A], error)
}

// process folds a record into its windows.
func (o *windowed[K, V, A]) process(c *Context, k K, v V) error {
	n := &c.counters[o.Op]
	n.In++
	if c.key == nil {
		return c.fail(o.Op, StageNullKey, ErrNull)
	}
	w := o.Node.w
	o.bounds = o.Window.Window.Assign(o.bounds[:0], c.time)
	_, err := o.addTo(c, k, v, w)
	return err
}

// addTo folds a record into the windows in bounds that take it. If none does, it is refused.
func (o *windowed[K, V, A]) addTo(c *Context, k K, v V, w int64) (folded bool, err error) {
	n := &c.counters[o.Op]
	refused := window.Accepted
	for _, b := range o.bounds {
		why, err := o.add(c, k, v, b, w)
		if err != nil {
			return false, err
		}
		if why != window.Accepted {
			refused = why
			n.LateWindows++
			continue
		}
		folded = true
	}
	switch {
	case folded:
		n.Folded++
	case refused != window.Accepted:
		b := o.bounds[len(o.bounds)-1]
		return false, c.refuse(o.Op, lateFor(o.Window, b, refused, c.judge(o.Window, w)))
	default:
		n.Folded++ // in a gap between windows: there is nothing to add it to
	}
	return folded, nil
}

// judge returns the watermark that a refusal is explained by: under Origin the record's own may be the higher one.
func (c *Context) judge(cfg *window.Config, w int64) int64 {
	if cfg.ByOrigin() {
		return max(w, c.origin)
	}
	return w
}

// lateFor describes a record that its last window has refused.
func lateFor(cfg *window.Config, b window.Bounds, why window.Reason, w int64) Late {
	reason := Expired
	if why == window.ReasonLateSuppressed {
		reason = Suppressed
	}
	return Late{Reason: reason, Windowed: true, Window: b, Watermark: w, By: cfg.LateBy(b, w)}
}

// add folds a record into one window, or says why not.
func (o *windowed[K, V, A]) add(c *Context, k K, v V, b window.Bounds, w int64) (window.Reason, error) {
	if o.Window.ByOrigin() {
		if why := o.Window.Refuses(b, c.origin); why != window.Accepted {
			return why, nil
		}
	}
	if why := o.Window.Refuses(b, w); why != window.Accepted {
		return why, nil
	}
	row, err := o.view.Row(b.End, c.key)
	if err != nil {
		return 0, c.stateError(o.Op, err)
	}
	cell := row.Value
	if row.Present {
		cell.State.MaxTime = row.Time
	}
	dirty := cell.State.Flags&window.Dirty != 0
	d := o.Window.Add(&cell.State, b, w, c.time)
	if d.Settled {
		if err := o.shower.settle(c, &cell); err != nil {
			return 0, err
		}
	}
	have := row.Present && (o.Window.Mode != window.ModeDiscarding || dirty && !d.Settled)
	alone := false // the record is not in the window
	if !row.Present && o.seed != nil {
		// Nothing that a pointer to would put on the heap for every record.
		s, err := o.seed(c, b)
		if err != nil {
			return 0, err
		}
		if cell.Acc, have, alone = s.acc, s.have, s.alone; alone || s.have && s.time > c.time {
			cell.State.MaxTime = s.time
		}
	}
	c.op = o.Op
	if alone {
		// What the window holds was there before.
	} else if cell.Acc, err = o.fold(c, k, cell.Acc, have, v); err != nil {
		return 0, c.fail(o.Op, StageUser, err)
	}
	var f firing[A]
	if d.Fire {
		if f, err = o.shower.fire(c, &cell, b, d, w); err != nil {
			return 0, err
		}
	}
	if d.Arm != window.ArmNone {
		cell.At = o.arm(c, d.Arm, b)
	}
	c.effects++
	if d.Late {
		c.counters[o.Op].LateAdmitted++
	}
	isNew := !row.Present
	o.view.Set(row, cell, cell.State.MaxTime)
	if isNew {
		o.expect(b, w)
	}
	if f.ok {
		a := c.setAside()
		if err := o.shower.emit(c, k, &f); err != nil {
			return 0, err
		}
		c.restore(a)
	}
	return window.Accepted, nil
}

// fold adds a value to an aggregate or takes it out again.
func (o *WindowedConfig[K, V, A]) fold(c *Context, k K, acc A, have bool, v V) (A, error) {
	if c.change == window.OpRetract && o.Undo != nil {
		return o.Undo(c, k, acc, v)
	}
	return o.Step(c, k, acc, have, v)
}

// expect notes that a window has come into being.
func (o *windowed[K, V, A]) expect(b window.Bounds, w int64) {
	if o.next == math.MinInt64 {
		return
	}
	if t := b.Last(); t > w {
		o.next = min(o.next, t)
	} else {
		o.next = min(o.next, o.Window.Cleanup(b))
	}
}

// due implements fires.
func (o *windowed[K, V, A]) due() int64 {
	if o.next == math.MinInt64 {
		o.next = o.earliest(o.Node.w)
	}
	return o.next
}

// earliest looks up the earliest time after w at which a window fires or closes.
func (o *windowed[K, V, A]) earliest(w int64) int64 {
	t := int64(math.MaxInt64)
	if end, ok := o.view.NextEnd(o.Window.CompleteEnd(w)); ok {
		t = o.Window.Window.Of(end).Last()
	}
	if end, ok := o.view.NextEnd(o.Window.ExpiredEnd(w)); ok {
		t = min(t, o.Window.Cleanup(o.Window.Window.Of(end)))
	}
	return t
}

// visit is a window that an advance has to look at, and when: it fires, or is only closed.
type visit struct {
	at  int64
	end int64
}

// visits lists what has to be looked at between two watermarks, in the order of time; a window fires before another one
// of the same time is closed.
func (o *windowed[K, V, A]) visits(from, to int64) []visit {
	var list []visit
	fired := o.Window.CompleteEnd(from)
	o.ends = o.view.Ends(o.ends[:0], next(fired), o.Window.CompleteEnd(to))
	for _, end := range o.ends {
		list = append(list, visit{o.Window.Window.Of(end).Last(), end})
	}
	if !o.Window.ClosesSilently() {
		// Those that fire now are closed by that, if it is time.
		o.ends = o.view.Ends(o.ends[:0], next(o.Window.ExpiredEnd(from)), min(fired, o.Window.ExpiredEnd(to)))
		for _, end := range o.ends {
			list = append(list, visit{o.Window.Cleanup(o.Window.Window.Of(end)), end})
		}
	}
	slices.SortFunc(list, func(a, b visit) int { return cmp.Or(cmp.Compare(a.at, b.at), -cmp.Compare(a.end, b.end)) })
	return list
}

// next returns the end after one up to which everything has been done.
func next(end int64) int64 {
	if end == math.MaxInt64 {
		return end
	}
	return end + 1
}

// advance implements fires.
func (o *windowed[K, V, A]) advance(c *Context, w int64, left *budget) (bool, error) {
	from := o.Node.w
	skip := o.pending
	for _, at := range o.visits(from, w) {
		var after []byte
		if skip {
			if at.end != o.atEnd {
				continue
			}
			if skip = false; o.atAll {
				continue
			}
			after = append(bytes.Clone(o.atKey), 0)
		}
		done, err := o.visit(c, at.end, after, from, w, left)
		if err != nil || !done {
			return false, err
		}
	}
	o.pending = false
	o.view.Expire(o.Window.ForgottenEnd(w))
	o.next = o.earliest(w)
	return true, nil
}

// visit fires and closes the rows of one window, from a key on. The cursor stays open while an advance is interrupted
// within a generation: to open one costs a sort of the window's rows.
func (o *windowed[K, V, A]) visit(c *Context, end int64, first []byte, from, w int64, left *budget) (bool, error) {
	if o.rows == nil {
		rows, err := o.view.ScanEndFrom(end, first)
		if err != nil {
			return false, c.stateError(o.Op, err)
		}
		o.rows = rows
	}
	b := o.Window.Window.Of(end)
	for {
		if !left.take() {
			return false, nil
		}
		if !o.rows.Next() {
			break
		}
		key := o.rows.Key()
		if err := o.show(c, key, o.rows, b, from, w); err != nil {
			return false, err
		}
		o.pending, o.atAll, o.atEnd, o.atKey = true, false, end, append(o.atKey[:0], key...)
	}
	if err := o.pause(); err != nil {
		return false, c.stateError(o.Op, err)
	}
	o.pending, o.atAll, o.atEnd = true, true, end
	return true, nil
}

// pause implements fires.
func (o *windowed[K, V, A]) pause() error {
	if o.rows == nil {
		return nil
	}
	err := errors.Join(o.rows.Err(), o.rows.Close())
	o.rows = nil
	return err
}

// close implements fires.
func (o *windowed[K, V, A]) close() error { return o.pause() }

// show emits what the watermark makes of one row.
func (o *windowed[K, V, A]) show(c *Context, key []byte, rows *store.Cursor[cell[A]], b window.Bounds, from, w int64) error {
	cell, err := rows.Value()
	if err != nil {
		return c.stateError(o.Op, err)
	}
	cell.State.MaxTime = rows.Time()
	d := o.Window.OnWatermark(&cell.State, b, from, w)
	c.counters[o.Op].Unfired += uint64(d.Dropped)
	if !d.Fire {
		return nil
	}
	if d.Settled {
		if err := o.shower.settle(c, &cell); err != nil {
			return err
		}
	}
	f, err := o.shower.fire(c, &cell, b, d, w)
	if err != nil {
		return err
	}
	k, err := o.shower.keyOf(c, key)
	if err != nil {
		return err
	}
	return o.shower.emit(c, k, &f)
}

// cursor implements fires: end of the window, 8 bytes | 1 if it is done, else 0 and the last key.
func (o *windowed[K, V, A]) cursor(dst []byte) []byte {
	if !o.pending {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(o.atEnd))
	if o.atAll {
		return append(dst, 1)
	}
	return append(append(dst, 0), o.atKey...)
}

var errCursor = errors.New("bad position of a firing")

// resume implements fires.
func (o *windowed[K, V, A]) resume(b []byte) error {
	o.next = math.MinInt64
	if o.Node.w != math.MinInt64 {
		o.view.Expire(o.Window.ForgottenEnd(o.Node.w))
	}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 9 {
		return errCursor
	}
	o.pending, o.atEnd, o.atAll = true, int64(binary.BigEndian.Uint64(b)), b[8] == 1
	o.atKey = bytes.Clone(b[9:])
	return nil
}

package processor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// CanSlice says whether an aggregate with such windows may be kept by slices, if its function merges: every window must
// show one pane, at its end. A window that shows more has a state of its own.
func CanSlice(c *window.Config) bool {
	return c.Window.Sliced() && c.ShowsOnce()
}

// maxSliced bounds the times that are numbered as slices, in ms: beyond, window and slice ends would overflow.
const maxSliced = 1 << 61

// errTime is returned for records that no slice can hold.
var errTime = fmt.Errorf("the time of the record is more than %d ms from 1970", int64(maxSliced))

// sliced is an aggregate over overlapping windows. A record changes the one slice it belongs to, in a store with a row per
// slice and key; what windows hold is merged when they fire. So that a firing does not merge hundreds of slices, see blocks.
type sliced[K, V, A any] struct {
	WindowedConfig[K, V, A]
	shower shower[K, A]
	blocks blocks[A]
	// next is the earliest time at which a window fires; the smallest int64 says that it must be looked up.
	next int64
	// An advance that is not done has fired the windows before the one that ends at atEnd, and that one up to atKey.
	pending bool
	atEnd   int64
	at      stage
	atKey   []byte
	rows    *merged[A] // of the window that ends at atEnd, nil while it is not being read
	cell    cell[A]
}

// stage is how far the firing of a window has got. The numbers are stored.
type stage byte

const (
	stageNone stage = iota // nothing is shown
	stageAll               // everything is shown
	stageKey               // everything up to a key is shown
)

// newSliced returns the operator of an aggregate that is kept by slices.
func newSliced[K, V, A any](s *store.State, a WindowedConfig[K, V, A]) (Func[K, V], error) {
	slices, err := store.WindowViewOf(s, a.Store, a.Value)
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	built, err := store.WindowViewOf(s, a.Blocks, a.Value)
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	o := &sliced[K, V, A]{
		WindowedConfig: a, shower: a.shower(), next: math.MinInt64,
		blocks: newBlocks(a.Window.Window, slices, built, a.Merge),
	}
	a.Node.work = o
	return o.process, nil
}

// process folds a record into its slice.
func (o *sliced[K, V, A]) process(c *Context, k K, v V) error {
	n := &c.counters[o.Op]
	n.In++
	switch {
	case c.key == nil:
		return c.fail(o.Op, StageNullKey, ErrNull)
	case c.time < -maxSliced || c.time > maxSliced:
		return c.fail(o.Op, StageUser, errTime)
	}
	w := o.Node.w
	s := o.Window.Window.Slice(c.time)
	cover := o.Window.Window.Cover(s)
	n.LateWindows += uint64(cover.Complete(w))
	end, open := cover.Next(w)
	if !open {
		return c.refuse(o.Op, lateFor(o.Window, o.Window.Window.Of(cover.Last), window.ReasonExpired, w))
	}
	c.op = o.Op
	fold := func(acc A, have bool) (A, error) {
		acc, err := o.fold(c, k, acc, have, v)
		if err != nil {
			err = c.fail(o.Op, StageUser, err)
		}
		return acc, err
	}
	if err := o.blocks.add(c.key, s, c.time, w, fold); err != nil {
		var user *Error
		if errors.As(err, &user) {
			return err
		}
		return c.stateError(o.Op, err)
	}
	c.effects++
	n.Folded++
	if o.next != math.MinInt64 {
		o.next = min(o.next, end-1)
	}
	return nil
}

// due implements fires.
func (o *sliced[K, V, A]) due() int64 {
	if o.next == math.MinInt64 {
		o.next = math.MaxInt64
		if end, ok := o.blocks.nextWindow(o.Node.w); ok {
			o.next = end - 1
		}
	}
	return o.next
}

// advance implements fires.
func (o *sliced[K, V, A]) advance(c *Context, w int64, left *budget) (bool, error) {
	done := o.Node.w // windows are fired up to here
	if o.pending {
		// Of the window the advance has reached, all is shown or the rest is still to come.
		if done = o.atEnd - 1; o.at != stageAll {
			done--
		}
	}
	for {
		end, ok := o.blocks.nextWindow(done)
		if !ok || end-1 > w {
			break
		}
		if !o.pending || o.atEnd != end || o.at == stageAll {
			o.pending, o.atEnd, o.at, o.atKey = true, end, stageNone, o.atKey[:0]
		}
		fired, err := o.fire(c, w, left)
		if err != nil || !fired {
			return false, err
		}
		o.at, done = stageAll, end-1
	}
	o.pending = false
	o.blocks.expire(w)
	o.next = math.MinInt64
	return true, nil
}

// fire shows what is left of the window at atEnd.
func (o *sliced[K, V, A]) fire(c *Context, w int64, left *budget) (bool, error) {
	b := o.Window.Window.Of(o.atEnd)
	if o.rows == nil {
		parts, ready, err := o.blocks.cover(b, left)
		if err != nil {
			return false, c.stateError(o.Op, err)
		}
		if !ready {
			return false, nil
		}
		var after []byte
		if o.at == stageKey {
			after = append(bytes.Clone(o.atKey), 0)
		}
		if o.rows, err = o.blocks.open(parts, after); err != nil {
			return false, c.stateError(o.Op, err)
		}
	}
	for {
		if !left.take() {
			return false, nil
		}
		ok, err := o.rows.next()
		if err != nil {
			return false, c.stateError(o.Op, err)
		}
		if !ok {
			break
		}
		if err := o.show(c, o.rows, b, w); err != nil {
			return false, err
		}
		o.at, o.atKey = stageKey, append(o.atKey[:0], o.rows.key...)
	}
	rows := o.rows
	o.rows = nil
	if err := rows.close(); err != nil {
		return false, c.stateError(o.Op, err)
	}
	return true, nil
}

// show emits the pane of one key. The window gets the state it would have if its records had been added to it.
func (o *sliced[K, V, A]) show(c *Context, rows *merged[A], b window.Bounds, w int64) error {
	o.cell = cell[A]{Acc: rows.acc}
	o.Window.Add(&o.cell.State, b, math.MinInt64, rows.time)
	d := o.Window.OnWatermark(&o.cell.State, b, o.Node.w, w)
	f, err := o.shower.fire(c, &o.cell, b, d, w)
	if err != nil {
		return err
	}
	k, err := o.shower.keyOf(c, rows.key)
	if err != nil {
		return err
	}
	return o.shower.emit(c, k, &f)
}

// pause implements fires.
func (o *sliced[K, V, A]) pause() error {
	err := o.blocks.pause()
	if o.rows != nil {
		err = errors.Join(err, o.rows.close())
		o.rows = nil
	}
	return err
}

// close implements fires.
func (o *sliced[K, V, A]) close() error { return o.pause() }

// cursor implements fires: end of the window, 8 bytes | stage | the last key, in stageKey. A block that is being built is
// begun anew.
func (o *sliced[K, V, A]) cursor(dst []byte) []byte {
	if !o.pending {
		return dst
	}
	dst = append(binary.BigEndian.AppendUint64(dst, uint64(o.atEnd)), byte(o.at))
	if o.at == stageKey {
		dst = append(dst, o.atKey...)
	}
	return dst
}

// resume implements fires.
func (o *sliced[K, V, A]) resume(b []byte) error {
	o.next = math.MinInt64
	if o.Node.w != math.MinInt64 {
		o.blocks.expire(o.Node.w)
	}
	if len(b) == 0 {
		return nil
	}
	if len(b) < 9 || stage(b[8]) > stageKey {
		return errCursor
	}
	o.pending, o.atEnd, o.at = true, int64(binary.BigEndian.Uint64(b)), stage(b[8])
	o.atKey = bytes.Clone(b[9:])
	return nil
}

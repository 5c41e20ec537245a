package processor

import (
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// sliding is an aggregate over the sliding windows of Kafka Streams, whose bounds are given by the records: one that ends
// with each record time, and one that begins right after it, if it holds a record. All have one length, so that they are
// rows of windowed. A second store keeps what the records of one key and one time add up to: it says which windows a record
// belongs to and what a new window holds. For its sake the function must merge.
type sliding[K, V, A any] struct {
	*windowed[K, V, A]
	times  *store.SessionView[cell[A]] // a record time is a session of one millisecond
	spans  []store.Span                // near the record in hand
	at     []int64                     // their times
	forget dueSessions[A]
}

// newSliding returns the operator of an aggregate over sliding windows, of which o are the rows.
func newSliding[K, V, A any](s *store.State, w *windowed[K, V, A]) (Func[K, V], error) {
	times, err := store.SessionViewOf(s, w.Times, codec.Codec[cell[A]](w.codec()))
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	o := &sliding[K, V, A]{windowed: w, times: times}
	w.seed = o.sum
	w.Node.work = o
	return o.process, nil
}

// process folds a record into the windows that hold it, makes those that it brings into being, and notes its time.
func (o *sliding[K, V, A]) process(c *Context, k K, v V) error {
	n := &c.counters[o.Op]
	n.In++
	if c.key == nil {
		return c.fail(o.Op, StageNullKey, ErrNull)
	}
	ts := inside(c.time)
	win := o.Window.Window
	near := store.Span{Start: win.Left(ts).Start - 1, End: win.Right(ts).End}
	if near.Start > ts {
		near.Start = math.MinInt64
	}
	var err error
	if o.spans, err = o.times.Overlapping(o.spans[:0], c.key, near); err != nil {
		return c.stateError(o.Op, err)
	}
	o.at = o.at[:0]
	for _, s := range o.spans {
		o.at = append(o.at, s.Start)
	}
	o.bounds = win.Affected(o.bounds[:0], ts, o.at)
	// The window right of the record does not hold it: whether it is late is not for that one to say.
	var right window.Bounds
	if last := len(o.bounds) - 1; !o.bounds[last].Contains(ts) {
		right, o.bounds = o.bounds[last], o.bounds[:last]
	}
	w := o.Node.w
	folded, err := o.addTo(c, k, v, w)
	if err != nil || !folded {
		return err
	}
	if right.End != 0 || right.Start != 0 {
		if _, err := o.add(c, k, v, right, w); err != nil {
			return err
		}
	}
	return o.note(c, k, v, store.Span{Start: ts, End: ts + 1})
}

// inside moves the one time that no half-open window can hold into the last one, as package window does.
func inside(t int64) int64 { return min(t, math.MaxInt64-1) }

// seed is what a new window holds without the record in hand.
type seed[A any] struct {
	acc   A
	have  bool
	time  int64 // of its last record
	alone bool  // the record in hand is not one of the window
}

// sum adds up the records of a new window that were there before the one in hand.
func (o *sliding[K, V, A]) sum(c *Context, b window.Bounds) (v seed[A], err error) {
	v.alone = !b.Contains(inside(c.time))
	for _, s := range o.spans {
		if !b.Contains(s.Start) {
			continue
		}
		row, err := o.times.Row(c.key, s)
		if err != nil {
			return v, c.stateError(o.Op, err)
		}
		if !row.Present {
			continue
		}
		if v.have {
			v.acc = o.Merge(v.acc, row.Value.Acc)
		} else {
			v.acc, v.have = row.Value.Acc, true
		}
		v.time = s.Start // they come in order
	}
	return v, nil
}

// note folds a record into what the records of its time add up to.
func (o *sliding[K, V, A]) note(c *Context, k K, v V, s store.Span) error {
	row, err := o.times.Row(c.key, s)
	if err != nil {
		return c.stateError(o.Op, err)
	}
	cell := row.Value
	c.op = o.Op
	if cell.Acc, err = o.fold(c, k, cell.Acc, row.Present, v); err != nil {
		return c.fail(o.Op, StageUser, err)
	}
	if row.Present {
		o.times.Set(row, cell, s.Start)
	} else if err := o.times.Put(c.key, s, cell, s.Start); err != nil {
		return c.stateError(o.Op, err)
	}
	return nil
}

// forgotten returns the end up to which (inclusive) record times are of no use at w: the window right of them is gone, and
// so is every window that a record of theirs could be in.
func (o *sliding[K, V, A]) forgotten(w int64) int64 {
	end, d := o.Window.ForgottenEnd(w), o.Window.Window.Size()
	if end == math.MaxInt64 || end < math.MinInt64+d {
		return end
	}
	return end - d
}

// advance implements fires. What was of no use at the last watermark goes first: should it take more than one transaction,
// no window has fired before the last of them.
func (o *sliding[K, V, A]) advance(c *Context, w int64, left *budget) (bool, error) {
	if o.forget.queue == nil {
		o.forget.queue = o.times.Due(math.MinInt64)
	}
	if done, err := o.forget.remove(c, o.Op, o.times, o.forgotten(o.Node.w), left); err != nil || !done {
		return false, err
	}
	return o.windowed.advance(c, w, left)
}

// resume implements fires.
func (o *sliding[K, V, A]) resume(b []byte) error {
	o.closeQueue()
	return o.windowed.resume(b)
}

// close implements fires.
func (o *sliding[K, V, A]) close() error {
	o.closeQueue()
	return o.windowed.close()
}

func (o *sliding[K, V, A]) closeQueue() {
	if o.forget.queue != nil {
		o.forget.queue.Close()
	}
	o.forget = dueSessions[A]{}
}

package processor

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"math"
	"slices"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// deadlines are the windows that a trigger has set a deadline for, by processing time. Deadlines come in few distinct
// values (window.Config.Deadline rounds them), so the heap holds values, each with the windows that share it. They are
// not stored: which windows have something to show is, and after a restore those are found again.
type deadlines struct {
	order times
	at    map[int64][]armedWindow
}

type armedWindow struct {
	bounds window.Bounds
	key    []byte
	kind   window.Arm
}

func (d *deadlines) add(at int64, w armedWindow) {
	if d.at == nil {
		d.at = map[int64][]armedWindow{}
	}
	if _, ok := d.at[at]; !ok {
		heap.Push(&d.order, at)
	}
	d.at[at] = append(d.at[at], w)
}

// next returns the earliest deadline, MaxInt64 if there is none.
func (d *deadlines) next() int64 {
	if len(d.order) == 0 {
		return math.MaxInt64
	}
	return d.order[0]
}

// pop returns the windows of the earliest deadline in the order of their keys and ends.
func (d *deadlines) pop() (at int64, list []armedWindow) {
	at = heap.Pop(&d.order).(int64)
	list = d.at[at]
	delete(d.at, at)
	slices.SortFunc(list, func(a, b armedWindow) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.bounds.End, b.bounds.End))
	})
	return at, list
}

// times is a heap.
type times []int64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(int64)) }
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// arm sets the deadline of a window of the key in hand and returns it.
func (o *windowed[K, V, A]) arm(c *Context, kind window.Arm, b window.Bounds) int64 {
	at := o.Window.Deadline(kind, c.task.now)
	o.armed.add(at, armedWindow{b, append([]byte{}, c.key...), kind})
	c.task.wake(at)
	return at
}

// tick implements ticks: it shows what is due. While an advance is interrupted nothing is: that a window has fired shows in
// the watermark, which the node has only when the advance is done.
func (o *windowed[K, V, A]) tick(c *Context, now int64) (int64, error) {
	if o.pending {
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

func (o *windowed[K, V, A]) showDue(c *Context, at int64, due armedWindow) error {
	b, w := due.bounds, o.Node.w
	if o.Window.Expired(b, w) {
		return nil
	}
	row, err := o.view.Row(b.End, due.key)
	if err != nil {
		if errors.Is(err, store.ErrExpired) {
			return nil
		}
		return c.stateError(o.Op, err)
	}
	cell := row.Value
	if !row.Present || cell.At != 0 && cell.At != at {
		return nil // gone, or set anew since
	}
	cell.State.MaxTime = row.Time
	d := o.Window.OnDeadline(&cell.State, b, w, due.kind)
	if d.Settled {
		if err := o.shower.settle(c, &cell); err != nil {
			return err
		}
	}
	if !d.Fire {
		return nil
	}
	f, err := o.shower.fire(c, &cell, b, d, w)
	if err != nil {
		return err
	}
	cell.At = 0
	c.effects++
	o.view.Set(row, cell, cell.State.MaxTime)
	k, err := o.shower.keyOf(c, due.key)
	if err != nil {
		return err
	}
	return o.shower.emit(c, k, &f)
}

// findArmed sets the deadlines of stored windows that hold something no pane has shown.
func (o *windowed[K, V, A]) findArmed(c *Context, now int64) error {
	for _, end := range o.view.Ends(nil, math.MinInt64, math.MaxInt64) {
		b := o.Window.Window.Of(end)
		rows, err := o.view.ScanEndFrom(end, nil)
		if err != nil {
			return c.stateError(o.Op, err)
		}
		for rows.Next() {
			cell, err := rows.Value()
			if err != nil {
				return c.stateError(o.Op, errors.Join(err, rows.Close()))
			}
			if kind := o.Window.Rearm(cell.State, b, o.Node.w); kind != window.ArmNone {
				o.armed.add(o.Window.Deadline(kind, now), armedWindow{b, append([]byte{}, rows.Key()...), kind})
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return c.stateError(o.Op, err)
		}
	}
	return nil
}

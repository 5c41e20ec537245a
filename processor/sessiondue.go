package processor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// dueSessions hands out sessions as the watermark reaches a point that lies at a fixed distance behind their ends. It
// holds the one that comes next.
type dueSessions[A any] struct {
	queue *store.SessionQueue[cell[A]]
	done  sessionAt // the last one dealt with, if any
	head  sessionAt
}

// sessionAt is the place of a session in the order of ends, keys and starts.
type sessionAt struct {
	ok   bool
	span window.Bounds
	key  []byte
}

func (a *sessionAt) compare(b *sessionAt) int {
	return cmp.Or(cmp.Compare(a.span.End, b.span.End), bytes.Compare(a.key, b.key), cmp.Compare(a.span.Start, b.span.Start))
}

// peek makes head the next session with End <= upTo and reports whether there is one.
func (d *dueSessions[A]) peek(upTo int64) (bool, error) {
	if d.queue == nil {
		return false, nil // nothing to be done there
	}
	for !d.head.ok {
		key, s, ok, err := d.queue.Next(upTo)
		if err != nil || !ok {
			return false, err
		}
		next := sessionAt{true, window.Bounds(s), key}
		if d.done.ok && next.compare(&d.done) <= 0 {
			continue // before the advance was interrupted
		}
		next.key = append(d.head.key[:0], key...)
		d.head = next
	}
	return true, nil
}

// end returns an end before which there is nothing to hand out.
func (d *dueSessions[A]) end() int64 {
	if d.head.ok {
		return d.head.span.End
	}
	return max(d.queue.NextEnd(), math.MinInt64+1)
}

// take moves past the head.
func (d *dueSessions[A]) take() {
	d.done.ok, d.done.span = true, d.head.span
	d.done.key = append(d.done.key[:0], d.head.key...)
	d.head.ok = false
}

// remove removes the sessions with End <= upTo from their store. It is not done when the budget is used up before.
func (d *dueSessions[A]) remove(c *Context, op Op, from *store.SessionView[cell[A]], upTo int64, left *budget) (bool, error) {
	for {
		ok, err := d.peek(upTo)
		if err != nil {
			return false, c.stateError(op, err)
		}
		if !ok {
			d.done.ok = false // what there was to skip is behind the watermark
			return true, nil
		}
		if !left.take() {
			return false, nil
		}
		c.effects++
		if err := from.Remove(d.head.key, store.Span(d.head.span), d.head.span.End); err != nil {
			return false, c.stateError(op, err)
		}
		d.take()
	}
}

// start opens the queues where the node's watermark is.
func (o *sessions[K, V, A]) start() {
	o.started = true
	w := o.Node.w
	if !o.Window.FiresSilently() {
		o.fire.queue = o.view.Due(o.Window.CompleteEnd(w))
	}
	if !o.Window.ClosesSilently() {
		o.shut.queue = o.view.Due(o.Window.ExpiredEnd(w))
	}
	o.forget.queue = o.view.Due(o.Window.ForgottenEnd(w))
}

// due implements fires.
func (o *sessions[K, V, A]) due() int64 {
	if !o.started {
		return math.MinInt64
	}
	at := o.Window.Forgotten(window.Bounds{End: o.forget.end()})
	if o.fire.queue != nil {
		at = min(at, o.fire.end()-1)
	}
	if o.shut.queue != nil {
		at = min(at, o.Window.Cleanup(window.Bounds{End: o.shut.end()}))
	}
	return at
}

// advance implements fires.
func (o *sessions[K, V, A]) advance(c *Context, w int64, left *budget) (bool, error) {
	if !o.started {
		o.start()
	}
	from := o.Node.w
	for {
		firing, err := o.fire.peek(o.Window.CompleteEnd(w))
		if err != nil {
			return false, c.stateError(o.Op, err)
		}
		closing, err := o.shut.peek(o.Window.ExpiredEnd(w))
		if err != nil {
			return false, c.stateError(o.Op, err)
		}
		if !firing && !closing {
			break
		}
		if !left.take() {
			return false, nil
		}
		at := &o.fire
		if !firing || closing && o.Window.Cleanup(o.shut.head.span) < o.fire.head.span.Last() {
			at = &o.shut
		}
		// A session that fires and closes in one advance is seen once, when it fires.
		if at == &o.fire || o.fire.queue == nil || at.head.span.Last() <= from {
			if err := o.show(c, &at.head, from, w); err != nil {
				return false, err
			}
		}
		at.take()
	}
	if done, err := o.forget.remove(c, o.Op, o.view, o.Window.ForgottenEnd(w), left); err != nil || !done {
		return false, err
	}
	// What an interrupted advance would have to skip is behind the watermark now.
	o.fire.done.ok, o.shut.done.ok = false, false
	return true, nil
}

// show emits what the watermark makes of one session.
func (o *sessions[K, V, A]) show(c *Context, at *sessionAt, from, w int64) error {
	row, err := o.view.Row(at.key, store.Span(at.span))
	if err != nil {
		return c.stateError(o.Op, err)
	}
	if !row.Present {
		return nil
	}
	cell := row.Value
	cell.State.MaxTime = row.Time
	d := o.Window.OnWatermark(&cell.State, at.span, from, w)
	c.counters[o.Op].Unfired += uint64(d.Dropped)
	if !d.Fire {
		return nil
	}
	if d.Settled {
		if err := o.shower.settle(c, &cell); err != nil {
			return err
		}
	}
	f, err := o.shower.fire(c, &cell, at.span, d, w)
	if err != nil {
		return err
	}
	k, err := o.shower.keyOf(c, at.key)
	if err != nil {
		return err
	}
	return o.shower.emit(c, k, &f)
}

// cursor implements fires: for the queues of firing and of closing, a byte that says whether one was dealt with, then
// its end and start, 8 bytes each, the length of the key as a uvarint, and the key.
func (o *sessions[K, V, A]) cursor(dst []byte) []byte {
	if !o.fire.done.ok && !o.shut.done.ok {
		return dst
	}
	for _, at := range [...]*sessionAt{&o.fire.done, &o.shut.done} {
		if !at.ok {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, 1)
		dst = binary.BigEndian.AppendUint64(dst, uint64(at.span.End))
		dst = binary.BigEndian.AppendUint64(dst, uint64(at.span.Start))
		dst = binary.AppendUvarint(dst, uint64(len(at.key)))
		dst = append(dst, at.key...)
	}
	return dst
}

// resume implements fires.
func (o *sessions[K, V, A]) resume(b []byte) error {
	o.started = false
	if len(b) == 0 {
		return nil
	}
	for _, at := range [...]*sessionAt{&o.fire.done, &o.shut.done} {
		if len(b) == 0 {
			return errCursor
		}
		flag := b[0]
		b = b[1:]
		if flag == 0 {
			continue
		}
		if len(b) < 17 {
			return errCursor
		}
		at.ok = true
		at.span.End = int64(binary.BigEndian.Uint64(b))
		at.span.Start = int64(binary.BigEndian.Uint64(b[8:]))
		n, size := binary.Uvarint(b[16:])
		if size <= 0 || n > uint64(len(b)-16-size) {
			return errCursor
		}
		at.key = append([]byte{}, b[16+size:16+size+int(n)]...)
		b = b[16+size+int(n):]
	}
	return nil
}

// pause implements fires: the queues hold nothing open.
func (o *sessions[K, V, A]) pause() error { return nil }

// close implements fires.
func (o *sessions[K, V, A]) close() error {
	for _, d := range [...]*dueSessions[A]{&o.fire, &o.shut, &o.forget} {
		if d.queue != nil {
			d.queue.Close()
			d.queue = nil
		}
	}
	o.started = false
	return nil
}

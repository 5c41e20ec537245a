package store

import "github.com/tidemark/tidemark/codec"

// TimerView is a store of timers: one point in time per key and tag, in ms. Setting a timer again moves it. The changelog
// has one record per changed timer: key and tag, escaped as in the DB, to the time, 8 bytes big-endian.
type TimerView struct {
	v    *View[int64]
	dues *dues
	q    *dueQueue
	buf  []byte
	due  []byte
}

// TimerViewOf returns the view of a store of kind Timers. It is the same view on every call for one State.
func TimerViewOf(s *State, store string) (*TimerView, error) {
	return wrapperOf(s, store, Timers, codec.Int64(), func(v *View[int64]) (*TimerView, error) {
		d, err := newDues(s, v.store)
		if err != nil {
			return nil, err
		}
		t := &TimerView{v: v, dues: d, q: d.open(nil)}
		s.queues = append(s.queues, t.q)
		return t, nil
	})
}

func (v *TimerView) row(key, tag []byte) (*Row[int64], error) {
	v.buf = AppendTimerKey(v.buf[:0], key, tag)
	return v.v.Row(v.buf)
}

// Set sets the timer of key and tag to t.
func (v *TimerView) Set(key, tag []byte, t int64) error {
	r, err := v.row(key, tag)
	if err != nil || r.Present && r.Value == t {
		return err
	}
	had, old := r.Present, r.Value
	v.v.refresh(r)
	v.v.Set(r, t, 0)
	if had {
		return v.dues.move(old, v.buf, t, v.buf)
	}
	return v.dues.add(t, v.buf)
}

// Delete removes the timer of key and tag, if there is one.
func (v *TimerView) Delete(key, tag []byte) error {
	r, err := v.row(key, tag)
	if err != nil || !r.Present {
		return err
	}
	old := r.Value
	v.v.Remove(r, 0)
	return v.dues.remove(old, v.buf)
}

// Get returns the time of the timer of key and tag, and whether it is set.
func (v *TimerView) Get(key, tag []byte) (t int64, ok bool, err error) {
	r, err := v.row(key, tag)
	if err != nil {
		return 0, false, err
	}
	return r.Value, r.Present, nil
}

// PopDue removes the first timer with t <= w, in the order of time, key and tag, and returns it; ok is false if none is
// due. Timers set meanwhile take their place in the order, also before those returned already. The slices are valid
// until the next call on the view.
func (v *TimerView) PopDue(w int64) (key, tag []byte, t int64, ok bool, err error) {
	for {
		k, ok, err := v.q.next(w)
		if !ok || err != nil {
			return nil, nil, 0, false, err
		}
		v.due = append(v.due[:0], k...)
		t, row := timeAt(v.due), v.due[8:]
		r, err := v.v.Row(row)
		if err != nil {
			return nil, nil, 0, false, err
		}
		v.q.take()
		// Without a look: what is out of date goes, too.
		set := r.Present && r.Value == t
		if set {
			v.v.Remove(r, 0)
		}
		if err := v.dues.v.Delete(v.due, 0); err != nil {
			return nil, nil, 0, false, err
		}
		if key, tag, ok := ParseTermKey(row); ok && set {
			return key, tag, t, true, nil
		}
	}
}

// NextDue returns a time before which no timer is due, and ok false if there is none at all.
func (v *TimerView) NextDue() (t int64, ok bool, err error) {
	k, _, err := v.q.next(0)
	if k == nil || err != nil {
		return 0, false, err
	}
	return timeAt(k), true, nil
}

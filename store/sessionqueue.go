package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// SessionQueue hands out sessions in the order of End, key, Start, without removing them. Sessions that are put behind
// the last one handed out take their place in it; those with an End up to what Next was last asked for are not handed
// out.
type SessionQueue[V any] struct {
	v       *SessionView[V]
	place   endPlace
	next    int64 // nothing is handed out before this End
	recent  endReader
	stored  storedEnds
	pending []Span // sessions of the entry in hand, still to be handed out
	key     []byte // of the entry in hand
}

// Due returns a queue of the sessions with End > after. It is good until the next Rollback of the State.
func (v *SessionView[V]) Due(after int64) *SessionQueue[V] {
	q := &SessionQueue[V]{v: v, place: endPlace{time: after, whole: true}, next: math.MinInt64}
	v.queues = append(v.queues, q)
	v.listEnds()
	return q
}

// Close ends the queue.
func (q *SessionQueue[V]) Close() {
	q.v.queues = slices.DeleteFunc(q.v.queues, func(o *SessionQueue[V]) bool { return o == q })
}

// NextEnd returns an End before which there is nothing to hand out; math.MaxInt64 if there is nothing at all.
func (q *SessionQueue[V]) NextEnd() int64 { return q.next }

// Next returns the next session with End <= upTo; ok is false if there is none for now. key is valid until the next call
// of Next.
func (q *SessionQueue[V]) Next(upTo int64) (key []byte, s Span, ok bool, err error) {
	for len(q.pending) == 0 {
		if q.next > upTo {
			q.pass(upTo)
			return nil, Span{}, false, nil
		}
		time, key, dir, ok, err := q.head()
		if err != nil {
			return nil, Span{}, false, err
		}
		q.next = time
		if !ok {
			q.next = math.MaxInt64
		}
		if !ok || time > upTo {
			q.pass(upTo)
			return nil, Span{}, false, nil
		}
		q.key = append(q.key[:0], key...)
		q.place.time, q.place.whole = time, false
		q.place.key = append(q.place.key[:0], key...)
		if err := q.look(time, dir); err != nil {
			return nil, Span{}, false, err
		}
	}
	s = q.pending[0]
	q.pending = q.pending[1:]
	return q.key, s, true, nil
}

// pass notes that everything up to upTo was handed out.
func (q *SessionQueue[V]) pass(upTo int64) {
	if upTo < q.place.time || upTo == q.place.time && q.place.whole {
		return
	}
	q.place.time, q.place.whole = upTo, true
	x := &q.v.ends
	if len(x.buckets) == 0 || x.buckets[0].no >= upTo>>bucketBits {
		return
	}
	low := upTo
	for _, o := range q.v.queues {
		if low = min(low, o.place.time); !o.place.whole && o.place.time > math.MinInt64 {
			low = min(low, o.place.time-1)
		}
	}
	x.drop(low)
}

// head returns the first entry behind the place of the queue.
func (q *SessionQueue[V]) head() (time int64, key []byte, dir dirRef, ok bool, err error) {
	time, key, dir, ok = q.v.ends.head(&q.recent, &q.place)
	t, k, found, err := q.stored.head(q.v.v.s, q.v.due, &q.place)
	if err != nil || !found {
		return time, key, dir, ok, err
	}
	if !ok || t < time || t == time && string(k) < string(key) {
		return t, k, dirRef{}, true, nil
	}
	return time, key, dir, true, nil
}

// look finds the sessions that the entry in hand stands for.
func (q *SessionQueue[V]) look(time int64, dir dirRef) (err error) {
	v := q.v
	i, ok := v.dir.at(dir)
	if !ok {
		if i, err = v.entry(q.key); err != nil {
			return err
		}
	}
	q.pending = q.pending[:0]
	for _, s := range v.dir.spans(i) {
		switch {
		case s.End == time:
			q.pending = append(q.pending, s)
		case s.Start < time && time < s.End:
			v.ended(s.End, q.key, i)
		}
	}
	return nil
}

// ended adds an entry for a session of the key with the entry i in the directory.
func (v *SessionView[V]) ended(end int64, key []byte, i uint32) {
	if len(v.queues) == 0 {
		return
	}
	v.ends.add(end, key, v.v.s.cur, v.dir.ref(i))
	for _, q := range v.queues {
		if end > q.place.time || !q.place.whole {
			q.next = min(q.next, end)
		}
	}
}

// grown adds an entry for a session that has grown, if it has come out of what a queue has passed.
func (v *SessionView[V]) grown(key []byte, i uint32, from, to Span) {
	if from.Start < to.Start || to.End < from.End {
		v.ended(to.End, key, i)
		return
	}
	if from.End == to.End {
		return
	}
	for _, q := range v.queues {
		if from.End <= q.place.time && q.place.time <= to.End {
			v.ended(to.End, key, i)
			return
		}
	}
}

// listEnds lists the ends of all sessions that the DB does not have, as they are, and lets the queues look into the DB
// again.
func (v *SessionView[V]) listEnds() {
	v.ends.clear()
	var buf []byte
	add := func(row []byte, gen uint32) {
		if key, s, ok := appendSessionUser(buf[:0], row); ok {
			buf = key
			v.ends.add(s.End, key, gen, dirRef{})
		}
	}
	s, store := v.v.s, v.v.store
	all := s.committedGens.list
	if s.sealed != nil && !s.broken {
		all = append(slices.Clip(all), s.sealed)
	}
	for _, g := range all {
		if g == nil || g.no <= s.persisted {
			continue
		}
		for i := g.start[store]; i < g.start[store+1]; i++ {
			if e := &g.entries[i]; e.vlen != tombstone && !e.is(entryOld) {
				add(g.key(e), g.no)
			}
		}
	}
	for _, i := range v.v.dirty {
		if r := v.v.row(i); r.Present {
			add(v.v.key(r), s.cur)
		}
	}
	for _, q := range v.queues {
		q.next = math.MinInt64
		q.stored.rewind(&q.place)
	}
}

// persisted implements queue: what the DB has now need not be listed, except where a queue has read the DB already.
func (v *SessionView[V]) persisted() {
	for _, q := range v.queues {
		q.stored.reopen(&q.place)
	}
	done := v.v.s.persisted
	v.ends.keep(func(e *endEntry) bool {
		if e.gen > done {
			return true
		}
		for _, q := range v.queues {
			if q.place.time <= e.time && e.time <= q.stored.upTo {
				return true
			}
		}
		return false
	})
}

// storedEnds reads the list of due times in the DB, many entries by one scan.
type storedEnds struct {
	run     []endEntry
	mem     []byte
	horizon []byte // where the next scan begins
	upTo    int64  // the time of horizon
	all     bool   // there is nothing at or above the horizon
}

// rewind makes it start behind a place.
func (r *storedEnds) rewind(p *endPlace) {
	r.run, r.all = r.run[:0], false
	r.upTo = p.time
	r.horizon = AppendTimeKey(r.horizon[:0], p.time)
}

// reopen is told that there may be more in the DB at or above the horizon.
func (r *storedEnds) reopen(p *endPlace) {
	if len(r.run) == 0 {
		r.rewind(p)
	}
	r.all = false
}

// head returns the first entry behind the place.
func (r *storedEnds) head(s *State, due int, p *endPlace) (time int64, key []byte, ok bool, err error) {
	for {
		for ; len(r.run) > 0; r.run = r.run[1:] {
			e := &r.run[0]
			if k := r.mem[e.off : e.off+e.n]; p.before(e.time, k) {
				return e.time, k, true, nil
			}
		}
		if r.all {
			return 0, nil, false, nil
		}
		if p.time > r.upTo {
			r.rewind(p)
		}
		if err := r.fill(s, due); err != nil {
			return 0, nil, false, err
		}
	}
}

// fill scans from the horizon.
func (r *storedEnds) fill(s *State, due int) (err error) {
	number := s.numbers[due]
	it, err := s.db.Scan(appendKey(nil, number, r.horizon), appendKey(nil, number+1, nil))
	if err != nil {
		return fmt.Errorf("store: %s: scan: %w", s.specs[due].ID, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if cap(r.run) < 64 {
		r.run = make([]endEntry, 0, dueFill)
	}
	r.run, r.mem = r.run[:0], r.mem[:0]
	for len(r.run) < dueFill && it.Next() {
		b := it.Key()[numberLen:]
		if len(b) < 8 {
			return fmt.Errorf("store: %s: row %q: %w", s.specs[due].ID, b, ErrCorrupt)
		}
		off := len(r.mem)
		mem, _, ok := appendSessionUser(r.mem, b[8:])
		if !ok {
			return fmt.Errorf("store: %s: row %q: %w", s.specs[due].ID, b, ErrCorrupt)
		}
		r.mem = mem
		r.run = append(r.run, endEntry{time: timeAt(b), off: uint32(off), n: uint32(len(mem) - off)})
		r.horizon = append(append(r.horizon[:0], b...), 0)
		r.upTo = timeAt(b)
	}
	if r.all = len(r.run) < dueFill; r.all {
		if err := it.Err(); err != nil {
			return fmt.Errorf("store: %s: scan: %w", s.specs[due].ID, err)
		}
	}
	return nil
}

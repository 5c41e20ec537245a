package store

import (
	"bytes"
)

// queue is what remembers rows of a State outside its views.
type queue interface {
	// reset is told of a Rollback.
	reset()
	// persisted is told that the DB has more of the generations than before.
	persisted()
}

// dueQueue hands out the entries of a store of due times in their order. It holds the first of them, from one scan; those
// that are added below its horizon go into a heap beside it. So handing out an entry is no scan.
type dueQueue struct {
	v       *View[nothing]
	start   []byte // where it begins after a reset
	run     []dueEntry
	heap    []dueEntry
	mem     []byte // their keys
	live    int    // bytes of mem in use
	horizon []byte // entries below are in run or heap, or were handed out
	all     bool   // there is nothing at or above the horizon that is not in the heap
	last    []byte // the last entry handed out
}

type dueEntry struct{ off, n uint32 }

const (
	dueFill  = 4096    // entries of one scan
	dueHeap  = 8192    // entries added before the queue forgets them and scans again
	dueWaste = 1 << 20 // bytes
)

func (q *dueQueue) reset() {
	q.clear()
	q.last = q.last[:0]
	q.horizon, q.all = append(q.horizon[:0], q.start...), false
}

func (q *dueQueue) persisted() {}

func (q *dueQueue) clear() { q.run, q.heap, q.mem, q.live = q.run[:0], q.heap[:0], q.mem[:0], 0 }

func (q *dueQueue) key(e dueEntry) []byte { return q.mem[e.off : e.off+e.n] }

func (q *dueQueue) less(a, b dueEntry) bool { return bytes.Compare(q.key(a), q.key(b)) < 0 }

func (q *dueQueue) keep(key []byte) dueEntry {
	if len(q.mem) > dueWaste && len(q.mem) > 4*q.live {
		q.compact()
	}
	e := dueEntry{uint32(len(q.mem)), uint32(len(key))}
	q.mem = append(q.mem, key...)
	q.live += len(key)
	return e
}

func (q *dueQueue) compact() {
	mem := make([]byte, 0, 2*q.live)
	for _, list := range [...][]dueEntry{q.run, q.heap} {
		for i, e := range list {
			mem = append(mem, q.key(e)...)
			list[i].off = uint32(len(mem)) - e.n
		}
	}
	q.mem = mem
}

// add is told of a new entry.
func (q *dueQueue) add(key []byte) {
	if !q.all && bytes.Compare(key, q.horizon) >= 0 {
		return
	}
	if len(q.heap) >= dueHeap && q.forget() {
		q.add(key)
		return
	}
	q.heap = append(q.heap, q.keep(key))
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(q.heap[i], q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

// forget drops what the queue holds, to be scanned again, unless some of it lies before what was handed out.
func (q *dueQueue) forget() bool {
	first, ok := q.first()
	if ok && bytes.Compare(first, q.last) <= 0 {
		return false
	}
	if ok {
		q.horizon = append(q.horizon[:0], first...)
	}
	q.all = false
	q.clear()
	return true
}

// first returns the first entry the queue holds.
func (q *dueQueue) first() (key []byte, ok bool) {
	switch {
	case len(q.run) == 0 && len(q.heap) == 0:
		return nil, false
	case len(q.heap) == 0 || len(q.run) > 0 && !q.less(q.heap[0], q.run[0]):
		return q.key(q.run[0]), true
	}
	return q.key(q.heap[0]), true
}

// next returns the first entry with a time up to upTo, and leaves it in the queue.
func (q *dueQueue) next(upTo int64) (key []byte, ok bool, err error) {
	key, ok = q.first()
	if !ok {
		if q.all {
			return nil, false, nil
		}
		if err := q.fill(); err != nil {
			return nil, false, err
		}
		if key, ok = q.first(); !ok {
			return nil, false, nil
		}
	}
	return key, timeAt(key) <= upTo, nil
}

// take removes the entry next has returned, wherever it is held twice.
func (q *dueQueue) take() {
	key, _ := q.first()
	q.last = append(q.last[:0], key...)
	for ok := true; ok && bytes.Equal(key, q.last); key, ok = q.first() {
		q.live -= len(key)
		if len(q.heap) == 0 || len(q.run) > 0 && !q.less(q.heap[0], q.run[0]) {
			q.run = q.run[1:]
		} else {
			q.pop()
		}
	}
	if len(q.run) == 0 && len(q.heap) == 0 {
		q.clear()
	}
}

func (q *dueQueue) pop() {
	n := len(q.heap) - 1
	q.heap[0] = q.heap[n]
	q.heap = q.heap[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && q.less(q.heap[c+1], q.heap[c]) {
			c++
		}
		if !q.less(q.heap[c], q.heap[i]) {
			return
		}
		q.heap[i], q.heap[c] = q.heap[c], q.heap[i]
		i = c
	}
}

// fill scans from the horizon. The queue is empty.
func (q *dueQueue) fill() error {
	c, err := q.v.Scan(q.horizon, nil)
	if err != nil {
		return err
	}
	q.clear()
	if cap(q.run) < dueFill {
		q.run = make([]dueEntry, 0, dueFill)
	}
	q.all = true
	for c.Next() {
		q.run = append(q.run, q.keep(c.Key()))
		if len(q.run) == dueFill {
			q.horizon = append(append(q.horizon[:0], c.Key()...), 0)
			q.all = false
			break
		}
	}
	return c.Close()
}

// dues is the store of due times of another one, with the queues over it.
type dues struct {
	v        *View[nothing]
	queues   []*dueQueue
	from, to []byte
}

func newDues(s *State, store int) (*dues, error) {
	v, err := duesOf(s, store)
	if err != nil {
		return nil, err
	}
	return &dues{v: v}, nil
}

// open returns a queue of the entries with times from start on.
func (d *dues) open(start []byte) *dueQueue {
	q := &dueQueue{v: d.v, start: start}
	q.reset()
	d.queues = append(d.queues, q)
	return q
}

// add notes that the row of key is due at t.
func (d *dues) add(t int64, key []byte) error {
	d.to = append(AppendTimeKey(d.to[:0], t), key...)
	if err := d.v.putNew(d.to, nothing{}, 0, true); err != nil {
		return err
	}
	d.added()
	return nil
}

// move notes that a row is due at another time, or under another key.
func (d *dues) move(fromTime int64, fromKey []byte, t int64, key []byte) error {
	d.from = append(AppendTimeKey(d.from[:0], fromTime), fromKey...)
	d.to = append(AppendTimeKey(d.to[:0], t), key...)
	if err := d.v.move(d.from, d.to, nothing{}, 0, true); err != nil {
		return err
	}
	d.added()
	return nil
}

func (d *dues) added() {
	for _, q := range d.queues {
		q.add(d.to)
	}
}

// remove notes that the row of key is no longer due at t.
func (d *dues) remove(t int64, key []byte) error {
	d.from = append(AppendTimeKey(d.from[:0], t), key...)
	return d.v.Delete(d.from, 0)
}

package store

import (
	"bytes"
	"container/heap"
	"fmt"
)

// Scan iterates over the rows of a store with lo <= key < hi; a nil hi is open. Keys come without the number of the store,
// rows as Get returns them. They are valid until the next call. Next may end with ErrClosed when the State is closed.
func (r *Reading) Scan(store int, lo, hi []byte) (Iterator, error) {
	if bytes.Compare(lo, r.floors[store]) < 0 {
		lo = r.floors[store]
	}
	db, err := r.scanDB(store, lo, hi)
	if err != nil {
		return nil, err
	}
	m := &mergeIterator{db: db}
	for age, b := range r.lookup() {
		run := cutRun(b.sorted(store), lo, hi, b.key)
		if len(run) > 0 {
			m.heads = append(m.heads, head{key: b.key(run[0]), age: age, block: b, run: run})
		}
	}
	if db.Next() {
		m.heads = append(m.heads, head{key: db.Key(), age: oldest})
	} else {
		m.err = db.Err()
	}
	heap.Init(&m.heads)
	return m, nil
}

// scanDB opens an iterator of the DB that shows nothing later than the reading.
func (r *Reading) scanDB(store int, lo, hi []byte) (*gatedIterator, error) {
	number := r.numbers[store]
	end := appendKey(nil, number+1, nil)
	if hi != nil {
		end = appendKey(nil, number, hi)
	}
	it, err := r.gate.scan(r.db, appendKey(nil, number, lo), end)
	if err == nil && r.outdated() {
		it.Close()
		err = ErrOutdated
	}
	if err != nil {
		return nil, fmt.Errorf("store: %s: scan: %w", r.specs[store].ID, err)
	}
	return it, nil
}

// sorted returns the entries of a store by key, the newest of each.
func (b *block) sorted(store int) []blockRef {
	p := b.part(store)
	p.runs.Do(func() {
		items := make([]item, len(p.refs))
		for i := range items {
			items[i].pos = uint64(i)
		}
		key := func(i uint64) []byte { return b.key(p.refs[i]) }
		sortItems(items, make([]item, len(items)), commonPrefix(items, key), key)
		p.run = make([]blockRef, len(items))
		for i, it := range items {
			p.run[i] = p.refs[it.pos]
		}
	})
	return p.run
}

// oldest is the age of the DB among the sources of a scan.
const oldest = 1 << 30

// head is the next row of one source.
type head struct {
	key   []byte
	age   int
	block *block // nil for the DB
	run   []blockRef
}

type heads []head

func (h heads) Len() int { return len(h) }
func (h heads) Less(i, j int) bool {
	if c := bytes.Compare(h[i].key, h[j].key); c != 0 {
		return c < 0
	}
	return h[i].age < h[j].age
}
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(head)) }
func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mergeIterator merges blocks and the DB: the newest source that has a key decides.
type mergeIterator struct {
	db         *gatedIterator
	heads      heads
	key, value []byte
	err        error
}

func (m *mergeIterator) Next() bool {
	for m.err == nil && len(m.heads) > 0 {
		h := &m.heads[0]
		m.key = append(m.key[:0], h.key...)
		var value []byte
		if h.block == nil {
			value = m.db.Value()
			m.value = append(m.value[:0], value...)
		} else {
			g, e := h.block.at(h.run[0])
			if value = g.sharedValue(e); value != nil {
				m.value = append(m.value[:0], value...)
			}
		}
		present := h.block == nil || value != nil
		for len(m.heads) > 0 && bytes.Equal(m.heads[0].key, m.key) {
			m.advance()
		}
		if m.err == nil && present {
			return true
		}
	}
	return false
}

// advance moves the first source on.
func (m *mergeIterator) advance() {
	h := &m.heads[0]
	more := false
	if h.block == nil {
		if more = m.db.Next(); more {
			h.key = m.db.Key()
		} else if err := m.db.Err(); err != nil {
			m.err = err
		}
	} else if h.run = h.run[1:]; len(h.run) > 0 {
		more = true
		h.key = h.block.key(h.run[0])
	}
	if more {
		heap.Fix(&m.heads, 0)
	} else {
		heap.Pop(&m.heads)
	}
}

func (m *mergeIterator) Key() []byte   { return m.key }
func (m *mergeIterator) Value() []byte { return m.value }
func (m *mergeIterator) Err() error    { return m.err }
func (m *mergeIterator) Close() error  { return m.db.Close() }

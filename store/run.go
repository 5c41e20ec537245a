package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// meta is a meta row on its way to the DB.
type meta struct {
	key   string
	value []byte
}

// layerRun is the Run of a set of generations: meta rows, then the newest version of every row by store number and key.
// It sorts one store at a time, when it gets there.
type layerRun struct {
	gens    *gens
	meta    []meta
	order   []storeNumber // ascending numbers, those still to come
	items   []item        // of the present store, those still to come
	floor   []byte        // of the present store
	present storeNumber
	buf     []item
	spare   []item

	// skipDeletes leaves tombstones out: there is nothing below they could hide.
	skipDeletes bool

	floors  [][]byte // rows below are left out
	dropped []bool   // by store: the rows below the floor are removed
	wiped   []int    // stores of which all rows are removed
	pending []byte   // key up to which rows of the present store are removed, still to be handed out

	lists   []int            // by store: that of its due times, if it is derived from its rows; else -1, or nil for all
	derived map[int]*derived // lists still to be handed out, by their stores
	feed    *derived         // the one that the rows of the present store go to
	list    *derived         // the present store is this list

	key, value, end []byte
}

type storeNumber struct {
	store  int
	number uint16
}

func newLayerRun(gs *gens, numbers []uint16, m []meta) *layerRun {
	r := &layerRun{gens: gs, meta: m}
	for i, n := range numbers {
		r.order = append(r.order, storeNumber{i, n})
	}
	slices.SortFunc(r.order, func(a, b storeNumber) int { return cmp.Compare(a.number, b.number) })
	return r
}

func (r *layerRun) Key() []byte   { return r.key }
func (r *layerRun) Value() []byte { return r.value }
func (r *layerRun) End() []byte   { return r.end }

func (r *layerRun) Next() bool {
	if len(r.meta) > 0 {
		m := r.meta[0]
		r.meta = r.meta[1:]
		r.key = []byte(m.key)
		if r.value = m.value; r.value == nil {
			r.value = []byte{}
		}
		return true
	}
	r.end = nil
	for {
		if r.pending != nil {
			r.key, r.value, r.end = r.number(), nil, r.pending
			r.pending = nil
			return true
		}
		for len(r.items) > 0 {
			g, e := r.gens.at(r.items[0].pos)
			r.items = r.items[1:]
			key := g.dbKey(e)
			if bytes.Equal(key, r.key) {
				continue // an older version
			}
			if r.floor != nil && bytes.Compare(key[numberLen:], r.floor) < 0 {
				continue
			}
			r.key, r.value = key, g.dbValue(e)
			if r.value != nil || !r.skipDeletes {
				if r.feed != nil {
					r.feed.add(key[numberLen:], r.value != nil)
				}
				return true
			}
		}
		if r.list != nil && r.list.next(r) {
			return true
		}
		if len(r.order) == 0 {
			return false
		}
		r.present, r.order = r.order[0], r.order[1:]
		r.open()
		r.floor = nil
		if r.floors != nil {
			r.floor = r.floors[r.present.store]
			if r.dropped[r.present.store] {
				r.pending = append(r.number(), r.floor...)
			}
		}
		if slices.Contains(r.wiped, r.present.store) {
			r.pending = binary.BigEndian.AppendUint16(nil, r.present.number+1)
		}
	}
}

// open gets ready for the present store.
func (r *layerRun) open() {
	store := r.present.store
	r.collect(store)
	r.feed, r.list = nil, r.derived[store]
	if r.list != nil {
		r.list.sort(r.present.number)
		delete(r.derived, store)
	}
	if r.lists != nil && r.lists[store] >= 0 {
		if r.derived == nil {
			r.derived = map[int]*derived{}
		}
		r.feed = &derived{row: make([]byte, timeLen)}
		r.derived[r.lists[store]] = r.feed
	}
}

// number returns the first bytes of the keys of the present store.
func (r *layerRun) number() []byte { return binary.BigEndian.AppendUint16(nil, r.present.number) }

// collect sorts the records of one store. They are gathered newest first, which the stable sort keeps.
func (r *layerRun) collect(store int) {
	n := 0
	for _, g := range r.gens.list {
		if g != nil {
			for i := g.start[store]; i < g.start[store+1]; i++ {
				if !g.entries[i].idle() {
					n++
				}
			}
		}
	}
	if cap(r.buf) < n {
		r.buf, r.spare = make([]item, 0, n), make([]item, n)
	}
	items := r.buf[:0]
	for _, g := range slices.Backward(r.gens.list) {
		if g == nil {
			continue
		}
		for i := g.start[store]; i < g.start[store+1]; i++ {
			if !g.entries[i].idle() {
				items = append(items, item{pos: position(g.no, int(i))})
			}
		}
	}
	key := r.gens.key
	sortItems(items, r.spare, commonPrefix(items, key), key)
	r.items = items
}

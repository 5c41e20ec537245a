package store

import (
	"bytes"
	"cmp"
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
	gens  *gens
	meta  []meta
	order []storeNumber // ascending numbers, those still to come
	items []item        // of the present store, those still to come
	buf   []item
	spare []item

	// skipDeletes leaves tombstones out: there is nothing below they could hide.
	skipDeletes bool

	key, value []byte
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
	for {
		for len(r.items) > 0 {
			g, e := r.gens.at(r.items[0].pos)
			r.items = r.items[1:]
			key := g.dbKey(e)
			if bytes.Equal(key, r.key) {
				continue // an older version
			}
			r.key, r.value = key, g.dbValue(e)
			if r.value != nil || !r.skipDeletes {
				return true
			}
		}
		if len(r.order) == 0 {
			return false
		}
		r.collect(r.order[0].store)
		r.order = r.order[1:]
	}
}

// collect sorts the records of one store. They are gathered newest first, which the stable sort keeps.
func (r *layerRun) collect(store int) {
	n := 0
	for _, g := range r.gens.list {
		if g != nil {
			n += int(g.start[store+1] - g.start[store])
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
			items = append(items, item{pos: position(g.no, int(i))})
		}
	}
	key := r.gens.key
	sortItems(items, r.spare, commonPrefix(items, key), key)
	r.items = items
}

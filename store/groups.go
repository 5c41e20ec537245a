package store

import (
	"encoding/binary"
	"slices"
)

// groups holds the dirty rows of a grouped store by the first eight bytes of their keys, so that a scan over one group
// sorts and sees nothing of the others.
type groups struct {
	list  []*group // by prefix
	last  *group   // that was added to
	spare []*group
	found func(prefix uint64) // is told of a group that gets its first row
}

type group struct {
	prefix uint64
	rows   []uint32 // in the order of their first change
	order  []uint32 // the first seen of them by key
	seen   int
}

func newGroups() *groups { return &groups{found: func(uint64) {}} }

// prefixOf returns the group of a key; prefixes compare as the keys do.
func prefixOf(key []byte) uint64 {
	if len(key) < 8 {
		return prefixAt(key, 0)
	}
	return binary.BigEndian.Uint64(key)
}

func (gs *groups) add(key []byte, row uint32) {
	p := prefixOf(key)
	g := gs.last
	if g == nil || g.prefix != p {
		g = gs.group(p)
	}
	g.rows = append(g.rows, row)
}

func (gs *groups) find(p uint64) (int, bool) {
	return slices.BinarySearchFunc(gs.list, p, func(g *group, p uint64) int {
		switch {
		case g.prefix < p:
			return -1
		case g.prefix > p:
			return 1
		}
		return 0
	})
}

func (gs *groups) group(p uint64) *group {
	i, ok := gs.find(p)
	if !ok {
		g := &group{}
		if n := len(gs.spare); n > 0 {
			g, gs.spare = gs.spare[n-1], gs.spare[:n-1]
		}
		g.prefix = p
		gs.list = slices.Insert(gs.list, i, g)
		gs.found(p)
	}
	gs.last = gs.list[i]
	return gs.last
}

// rows appends all rows, group by group.
func (gs *groups) rows(dst []uint32) []uint32 {
	for _, g := range gs.list {
		dst = append(dst, g.rows...)
	}
	return dst
}

// reset forgets all rows and keeps some of the memory.
func (gs *groups) reset() {
	const keep = 64
	for _, g := range gs.list {
		if len(gs.spare) < keep {
			*g = group{rows: g.rows[:0], order: g.order[:0]}
			gs.spare = append(gs.spare, g)
		}
	}
	clear(gs.list)
	gs.list, gs.last = gs.list[:0], nil
}

// span is the entries of one group in a sealed generation: a grouped store is sealed group by group.
type span struct {
	store    int
	prefix   uint64
	from, to uint32
}

// addSpan notes that the next entry is one of that group.
func (g *gen) addSpan(store int, prefix uint64) {
	at := uint32(len(g.entries))
	if n := len(g.spans); n > 0 && g.spans[n-1].store == store && g.spans[n-1].prefix == prefix {
		g.spans[n-1].to = at + 1
		return
	}
	g.spans = append(g.spans, span{store, prefix, at, at + 1})
}

// scanGroup returns a cursor over the rows of one group, from what follows the prefix in the first key on. It sorts the
// group's dirty rows and its entries in all generations that are not in the DB, and touches no other.
func (v *View[V]) scanGroup(prefix uint64, first []byte) (*Cursor[V], error) {
	s := v.s
	c := &Cursor[V]{v: v, at: -1, strip: 8}
	lo := binary.BigEndian.AppendUint64(nil, prefix)
	if v.expired(lo) {
		return c, nil
	}
	hi := Successor(lo)
	lo = append(lo, first...)
	if at, ok := v.groups.find(prefix); ok {
		rows := cutRun(v.sortGroup(v.groups.list[at]), lo, nil, func(i uint32) []byte { return v.key(v.row(i)) })
		c.sources = append(c.sources, source[V]{rows: rows})
	}
	all := gens{base: s.committedGens.base, list: slices.Clip(s.committedGens.list)}
	if s.sealed != nil {
		all.push(s.sealed)
	}
	if refs := cutRun(s.sortSpans(&all, v.store, prefix), lo, nil, all.key); len(refs) > 0 {
		c.sources = append(c.sources, source[V]{refs: refs, gens: &all})
	}
	if err := v.scanDB(c, lo, hi); err != nil {
		return nil, err
	}
	return c, nil
}

// sortGroup returns the dirty rows of a group by key.
func (v *View[V]) sortGroup(g *group) []uint32 {
	if g.seen == len(g.rows) {
		return g.order
	}
	// The old order may be in use by a cursor.
	g.order, g.seen = v.sortRows(g.rows), len(g.rows)
	return g.order
}

// sortSpans returns the newest position of every key of a group, by key.
func (s *State) sortSpans(all *gens, store int, prefix uint64) []uint64 {
	n := 0
	each := func(fn func(g *gen, sp span)) {
		for _, g := range all.list {
			if g == nil || g.no <= s.persisted {
				continue
			}
			for _, sp := range g.spans {
				if sp.store == store && sp.prefix == prefix {
					fn(g, sp)
				}
			}
		}
	}
	each(func(_ *gen, sp span) { n += int(sp.to - sp.from) })
	if n == 0 {
		return nil
	}
	items := s.scratch(n)
	each(func(g *gen, sp span) {
		for i := sp.from; i < sp.to; i++ {
			items = append(items, item{pos: position(g.no, int(i))})
		}
	})
	// Equal keys must come newest first.
	slices.Reverse(items)
	sortItems(items, s.spare, commonPrefix(items, all.key), all.key)
	refs := make([]uint64, 0, n)
	var last []byte
	for _, it := range items {
		key := all.key(it.pos)
		if len(refs) > 0 && string(key) == string(last) {
			continue // an older version
		}
		refs = append(refs, it.pos)
		last = key
	}
	return refs
}

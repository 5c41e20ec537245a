package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// item is one record to be sorted: eight bytes of its key, big-endian, and its position.
type item struct {
	prefix, pos uint64
}

// sortItems sorts by key and, among equal keys, newest position first. key returns the key of a position. Comparing
// whole keys would miss the cache twice per comparison, so the items are sorted by eight bytes at a time, and only those
// that agree in them are looked at again. depth is the number of leading bytes all keys share.
func sortItems(items, spare []item, depth int, key func(pos uint64) []byte) {
	for i := range items {
		items[i].prefix = prefixAt(key(items[i].pos), depth)
	}
	if len(items) < radixMin {
		slices.SortFunc(items, func(a, b item) int {
			if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
				return c
			}
			return cmp.Compare(b.pos, a.pos)
		})
	} else {
		radixSort(items, spare)
	}
	for lo := 0; lo < len(items); {
		hi := lo + 1
		for hi < len(items) && items[hi].prefix == items[lo].prefix {
			hi++
		}
		if hi > lo+1 {
			sortEqual(items[lo:hi], spare, depth+8, key)
		}
		lo = hi
	}
}

// sorted returns the positions of one store's entries in g by key.
func (s *State) sorted(g *gen, store int) []uint64 {
	from, to := g.start[store], g.start[store+1]
	items := s.scratch(int(to - from))
	for i := from; i < to; i++ {
		items = append(items, item{pos: position(g.no, int(i))})
	}
	key := func(pos uint64) []byte { return g.key(&g.entries[uint32(pos)]) }
	sortItems(items, s.spare, commonPrefix(items, key), key)
	out := make([]uint64, len(items))
	for i, it := range items {
		out[i] = it.pos
	}
	return out
}

// scratch returns an empty slice for n items, and makes spare as large.
func (s *State) scratch(n int) []item {
	if cap(s.items) < n {
		s.items, s.spare = make([]item, 0, n), make([]item, n)
	}
	return s.items[:0]
}

// sortRows returns rows of a view by key.
func (v *View[V]) sortRows(rows []uint32) []uint32 {
	key := func(i uint64) []byte { return v.key(v.row(uint32(i))) }
	items := v.s.scratch(len(rows))
	for _, i := range rows {
		items = append(items, item{pos: uint64(i)})
	}
	sortItems(items, v.s.spare, commonPrefix(items, key), key)
	out := make([]uint32, len(items))
	for n, it := range items {
		out[n] = uint32(it.pos)
	}
	return out
}

// sortEqual sorts items whose keys agree up to depth, if short keys are filled up with zeroes.
func sortEqual(items, spare []item, depth int, key func(pos uint64) []byte) {
	first := key(items[0].pos)
	same, long := true, true
	for i := range items {
		k := key(items[i].pos)
		same = same && bytes.Equal(k, first)
		long = long && len(k) > depth
	}
	switch {
	case same: // versions of one row: already newest first
	case long && len(items) >= radixMin:
		sortItems(items, spare, depth, key)
	default:
		slices.SortFunc(items, func(a, b item) int {
			if c := bytes.Compare(key(a.pos), key(b.pos)); c != 0 {
				return c
			}
			return cmp.Compare(b.pos, a.pos)
		})
	}
}

// prefixAt returns eight bytes of k from depth on, filled up with zeroes.
func prefixAt(k []byte, depth int) uint64 {
	k = k[min(depth, len(k)):]
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}

const (
	radixMin  = 512
	radixBits = 8
)

// radixSort sorts by prefix, least significant digit first. It keeps the order of equal prefixes, which is newest first.
// Digits in which all prefixes agree cost only the counting.
func radixSort(items, spare []item) {
	var counts [64 / radixBits][1 << radixBits]uint32
	for i := range items {
		p := items[i].prefix
		for d := range counts {
			counts[d][byte(p>>(d*radixBits))]++
		}
	}
	from, to := items, spare[:len(items)]
	for d := range counts {
		c, shift := &counts[d], d*radixBits
		if c[byte(from[0].prefix>>shift)] == uint32(len(items)) {
			continue
		}
		var sum uint32
		for i, n := range c {
			c[i] = sum
			sum += n
		}
		for _, it := range from {
			at := &c[byte(it.prefix>>shift)]
			to[*at] = it
			*at++
		}
		from, to = to, from
	}
	if &from[0] != &items[0] {
		copy(items, from)
	}
}

// commonPrefix returns how many leading bytes all keys share.
func commonPrefix(items []item, key func(pos uint64) []byte) int {
	if len(items) == 0 {
		return 0
	}
	first := key(items[0].pos)
	n := len(first)
	for i := range items {
		k := key(items[i].pos)
		n = min(n, len(k))
		for j := range n {
			if k[j] != first[j] {
				n = j
				break
			}
		}
	}
	return n
}

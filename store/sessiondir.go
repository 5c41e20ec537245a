package store

import (
	"bytes"
	"slices"
)

// sessionDir knows the spans of all sessions of the keys it holds, as they are in the current generation, so that a
// record finds its sessions without a scan. A key whose sessions have changed since the last commit never leaves, so what
// is not here is wholly in the layers and the DB. Rollback empties it.
type sessionDir struct {
	table   table
	entries []dirEntry
	free    []uint32
	more    map[uint32][]Span // all spans of an entry with more than one
	keys    arena
	hand    uint32
	limit   int
	// complete says that a key that is not here has no sessions: the store began empty, and no key has left.
	complete bool
}

// dirEntry holds no pointers.
type dirEntry struct {
	first Span
	key   uint64 // in the arena
	klen  uint32
	n     uint32 // spans
	mark  uint32 // generation in which it was last changed
	used  bool
	live  bool
}

func (d *sessionDir) reset() {
	*d = sessionDir{more: make(map[uint32][]Span), limit: d.limit}
}

func (d *sessionDir) find(key []byte, hash uint32) (uint32, bool) {
	if d.table.n == 0 {
		return 0, false
	}
	for i := hash & d.table.mask; ; i = (i + 1) & d.table.mask {
		s := d.table.slots[i]
		if s == 0 {
			return 0, false
		}
		if uint32(s>>32) == hash {
			n := uint32(s) - 1
			if e := &d.entries[n]; bytes.Equal(d.keys.get(e.key, e.klen), key) {
				e.used = true
				return n, true
			}
		}
	}
}

// insert adds a key without sessions. Up to some keys of the generations up to committed leave for it.
func (d *sessionDir) insert(key []byte, hash func([]byte) uint32, committed uint32) uint32 {
	for range 64 {
		if d.table.n < d.limit || len(d.entries) == 0 {
			break
		}
		d.hand = (d.hand + 1) % uint32(len(d.entries))
		if e := &d.entries[d.hand]; e.live && e.mark <= committed && !e.used {
			d.drop(d.hand, hash)
		} else {
			e.used = false
		}
	}
	if d.keys.wasteful() {
		var to arena
		for i := range d.entries {
			if e := &d.entries[i]; e.live {
				e.key = to.put(d.keys.get(e.key, e.klen))
			}
		}
		d.keys = to
	}
	i := uint32(len(d.entries))
	if n := len(d.free); n > 0 {
		i, d.free = d.free[n-1], d.free[:n-1]
	} else {
		d.entries = append(d.entries, dirEntry{})
	}
	d.entries[i] = dirEntry{key: d.keys.put(key), klen: uint32(len(key)), used: true, live: true}
	d.table.insert(hash(key), i)
	return i
}

func (d *sessionDir) drop(i uint32, hash func([]byte) uint32) {
	e := &d.entries[i]
	d.complete = false
	d.table.remove(hash(d.keys.get(e.key, e.klen)), i)
	d.keys.free(e.klen)
	delete(d.more, i)
	*e = dirEntry{}
	d.free = append(d.free, i)
}

// spans returns the spans of an entry, valid until the next call.
func (d *sessionDir) spans(i uint32, one *[1]Span) []Span {
	e := &d.entries[i]
	if e.n > 1 {
		return d.more[i]
	}
	one[0] = e.first
	return one[:e.n]
}

func compareSpans(a, b Span) int {
	switch {
	case a.End < b.End || a.End == b.End && a.Start < b.Start:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// add adds a span and reports whether it is new.
func (d *sessionDir) add(i uint32, s Span) bool {
	var one [1]Span
	list := d.spans(i, &one)
	at, ok := slices.BinarySearchFunc(list, s, compareSpans)
	if ok {
		return false
	}
	e := &d.entries[i]
	if e.n++; e.n == 1 {
		e.first = s
		return true
	}
	if e.n == 2 {
		list = append(make([]Span, 0, 2), list...)
	}
	d.more[i] = slices.Insert(list, at, s)
	return true
}

// remove removes a span and reports whether it was there.
func (d *sessionDir) remove(i uint32, s Span) bool {
	var one [1]Span
	list := d.spans(i, &one)
	at, ok := slices.BinarySearchFunc(list, s, compareSpans)
	if !ok {
		return false
	}
	e := &d.entries[i]
	switch e.n--; e.n {
	case 0:
	case 1:
		e.first = list[1-at]
		delete(d.more, i)
	default:
		d.more[i] = slices.Delete(list, at, at+1)
	}
	return true
}

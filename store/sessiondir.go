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
	keys    arena
	hand    uint32
	last    uint32 // entry last found
	made    uint32 // entries made so far
	limit   int
	// complete says that a key that is not here has no sessions: the store began empty, and no key has left.
	complete bool
}

// dirEntry holds a pointer only if the key has had several sessions at once.
type dirEntry struct {
	key   uint64 // in the arena
	klen  uint32
	n     uint32 // spans
	mark  uint32 // generation in which it was last changed
	no    uint32 // how many entries had been made with it
	used  bool
	live  bool
	first [1]Span
	more  []Span // all spans, if there are several
}

// dirRef refers to an entry as long as that does not leave. The zero dirRef refers to none.
type dirRef struct{ at, no uint32 }

func (d *sessionDir) ref(i uint32) dirRef { return dirRef{i, d.entries[i].no} }

// at returns the entry referred to, which becomes the last found.
func (d *sessionDir) at(r dirRef) (uint32, bool) {
	if r.no == 0 || int(r.at) >= len(d.entries) || d.entries[r.at].no != r.no {
		return 0, false
	}
	d.entries[r.at].used = true
	d.last = r.at
	return r.at, true
}

func (d *sessionDir) reset() {
	*d = sessionDir{limit: d.limit, made: d.made}
}

func (d *sessionDir) is(n uint32, key []byte) bool {
	e := &d.entries[n]
	return e.live && int(e.klen) == len(key) && bytes.Equal(d.keys.get(e.key, e.klen), key)
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
			if n := uint32(s) - 1; d.is(n, key) {
				d.entries[n].used = true
				d.last = n
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
	if d.made++; d.made == 0 {
		d.made = 1
	}
	d.entries[i] = dirEntry{no: d.made, key: d.keys.put(key), klen: uint32(len(key)), used: true, live: true}
	d.table.insert(hash(key), i)
	d.last = i
	return i
}

func (d *sessionDir) drop(i uint32, hash func([]byte) uint32) {
	e := &d.entries[i]
	if e.n > 0 {
		d.complete = false
	}
	d.table.remove(hash(d.keys.get(e.key, e.klen)), i)
	d.keys.free(e.klen)
	*e = dirEntry{}
	d.free = append(d.free, i)
}

// spans returns the spans of an entry in ascending order of End, Start. They are valid until the entry is changed.
func (d *sessionDir) spans(i uint32) []Span {
	e := &d.entries[i]
	if e.n > 1 {
		return e.more
	}
	return e.first[:e.n]
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

// place returns where a span is among those of an entry, or belongs. There are few.
func (d *sessionDir) place(i uint32, s Span) (at int, ok bool) {
	list := d.spans(i)
	if len(list) > 16 {
		return slices.BinarySearchFunc(list, s, compareSpans)
	}
	for at = len(list); at > 0; at-- {
		if c := compareSpans(list[at-1], s); c <= 0 {
			if c == 0 {
				return at - 1, true
			}
			break
		}
	}
	return at, false
}

// add adds a span and reports whether it is new.
func (d *sessionDir) add(i uint32, s Span) bool {
	at, ok := d.place(i, s)
	if ok {
		return false
	}
	e := &d.entries[i]
	switch e.n++; e.n {
	case 1:
		e.first[0] = s
	case 2:
		e.more = append(e.more[:0], e.first[0])
		fallthrough
	default:
		e.more = slices.Insert(e.more, at, s)
	}
	return true
}

// remove removes a span and reports whether it was there.
func (d *sessionDir) remove(i uint32, s Span) bool {
	at, ok := d.place(i, s)
	if !ok {
		return false
	}
	e := &d.entries[i]
	switch e.n--; e.n {
	case 0:
	case 1:
		e.first[0] = e.more[1-at]
		e.more = e.more[:0]
	default:
		e.more = slices.Delete(e.more, at, at+1)
	}
	return true
}

// replace puts a span in the place of another one that is there, if the new one is not.
func (d *sessionDir) replace(i uint32, from, to Span) bool {
	at, ok := d.place(i, from)
	if !ok {
		return false
	}
	if _, ok := d.place(i, to); ok {
		return false
	}
	list := d.spans(i)
	if (at == 0 || compareSpans(list[at-1], to) < 0) && (at+1 == len(list) || compareSpans(to, list[at+1]) < 0) {
		list[at] = to
		return true
	}
	d.remove(i, from)
	d.add(i, to)
	return true
}

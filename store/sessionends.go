package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// sessionEnds lists ends of sessions that the list of due times in the DB does not have, or not yet: those of sessions
// that were written since the last Persist. It is lazy. An entry is a time and a key, and says that a session of the key
// contains the moment before that time; it may end later by now, or be gone. So a session that grows needs no new entry,
// and one that goes leaves its entry behind. Whoever comes by an entry looks at the key's sessions and, if one ends later,
// adds an entry for its real end.
//
// What holds is: every session whose end a queue has not passed has an entry here or in the DB which that queue has not
// passed either, and which is not behind the session's end.
//
// Entries lie in buckets by time. A bucket is sorted when the first queue gets there.
type sessionEnds struct {
	buckets []*endBucket // by number
	last    *endBucket   // that was added to
	version uint32       // moves whenever the next entry of a queue may have become another one, or lie elsewhere
}

type endBucket struct {
	no      int64
	entries []endEntry
	mem     []byte // keys
	sorted  bool
}

type endEntry struct {
	time   int64
	off, n uint32
	gen    uint32 // generation in which it was added
	dir    dirRef
}

// bucketBits is the width of a bucket in ms, as a power of two.
const bucketBits = 10

func (b *endBucket) key(e *endEntry) []byte { return b.mem[e.off : e.off+e.n : e.off+e.n] }

func (b *endBucket) compare(e *endEntry, time int64, key []byte) int {
	if c := cmp.Compare(e.time, time); c != 0 {
		return c
	}
	return bytes.Compare(b.key(e), key)
}

func (b *endBucket) sort() {
	if b.sorted {
		return
	}
	b.sorted = true
	slices.SortFunc(b.entries, func(x, y endEntry) int { return b.compare(&x, y.time, b.key(&y)) })
}

func (x *sessionEnds) clear() {
	x.buckets, x.last = nil, nil
	x.version++
}

func (x *sessionEnds) find(no int64) (int, bool) {
	return slices.BinarySearchFunc(x.buckets, no, func(b *endBucket, no int64) int { return cmp.Compare(b.no, no) })
}

func (x *sessionEnds) bucket(no int64) *endBucket {
	if x.last != nil && x.last.no == no {
		return x.last
	}
	i, ok := x.find(no)
	if !ok {
		x.buckets = slices.Insert(x.buckets, i, &endBucket{no: no})
		x.version++
	}
	x.last = x.buckets[i]
	return x.last
}

// add adds an entry.
func (x *sessionEnds) add(time int64, key []byte, gen uint32, dir dirRef) {
	b := x.bucket(time >> bucketBits)
	e := endEntry{time: time, off: uint32(len(b.mem)), n: uint32(len(key)), gen: gen, dir: dir}
	if !b.sorted {
		b.mem = append(b.mem, key...)
		b.entries = append(b.entries, e)
		return
	}
	i, ok := slices.BinarySearchFunc(b.entries, time, func(e endEntry, t int64) int { return b.compare(&e, t, key) })
	if ok {
		b.entries[i].gen, b.entries[i].dir = gen, dir
		return
	}
	b.mem = append(b.mem, key...)
	b.entries = slices.Insert(b.entries, i, e)
	x.version++
}

// keep leaves only the entries for which f reports true.
func (x *sessionEnds) keep(f func(e *endEntry) bool) {
	for _, b := range x.buckets {
		kept := b.entries[:0]
		for i := range b.entries {
			if f(&b.entries[i]) {
				kept = append(kept, b.entries[i])
			}
		}
		b.entries = kept
		if 2*len(kept) < cap(kept) {
			b.entries = slices.Clone(kept)
			mem := make([]byte, 0, len(b.mem)/2)
			for i := range b.entries {
				e := &b.entries[i]
				off := uint32(len(mem))
				mem = append(mem, b.key(e)...)
				e.off = off
			}
			b.mem = mem
		}
	}
	x.buckets = slices.DeleteFunc(x.buckets, func(b *endBucket) bool { return len(b.entries) == 0 })
	x.last = nil
	x.version++
}

// drop forgets the buckets of times up to t.
func (x *sessionEnds) drop(t int64) {
	n := 0
	for n < len(x.buckets) && t != math.MinInt64 && x.buckets[n].no < (t+1)>>bucketBits {
		n++
	}
	if t == math.MaxInt64 {
		n = len(x.buckets)
	}
	if n > 0 {
		x.buckets = slices.Delete(x.buckets, 0, n)
		x.last = nil
		x.version++
	}
}

// endPlace is a place in the order of ends and keys: behind the entry of that time and key, or behind all of that time.
type endPlace struct {
	time  int64
	key   []byte
	whole bool
}

// before reports whether an entry lies behind the place.
func (p *endPlace) before(time int64, key []byte) bool {
	return time > p.time || time == p.time && !p.whole && bytes.Compare(key, p.key) > 0
}

// endReader reads the entries behind a place.
type endReader struct {
	version uint32
	ok      bool
	bucket  int // number in buckets
	at      int
}

// head returns the first entry behind the place.
func (x *sessionEnds) head(r *endReader, p *endPlace) (time int64, key []byte, dir dirRef, ok bool) {
	if r.version != x.version || !r.ok {
		*r = endReader{version: x.version, ok: true}
		r.bucket, _ = x.find(p.time >> bucketBits)
	}
	for ; r.bucket < len(x.buckets); r.bucket, r.at = r.bucket+1, 0 {
		b := x.buckets[r.bucket]
		b.sort()
		if r.at == 0 && len(b.entries) > 0 && !p.before(b.entries[0].time, b.key(&b.entries[0])) {
			r.at, _ = slices.BinarySearchFunc(b.entries, p, func(e endEntry, p *endPlace) int {
				if p.before(e.time, b.key(&e)) {
					return 1
				}
				return -1
			})
		}
		for ; r.at < len(b.entries); r.at++ {
			if e := &b.entries[r.at]; p.before(e.time, b.key(e)) {
				return e.time, b.key(e), e.dir, true
			}
		}
	}
	return 0, nil, dirRef{}, false
}

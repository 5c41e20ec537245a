package store

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// An encoded row in a slab, which is also the row of the DB:
//
//	+-----------------+-----+-----------------------+-------+
//	| store number, 2 | key | timestamp in ms, 8    | value |      integers are big-endian
//	+-----------------+-----+-----------------------+-------+
//	|<------ key of the DB->|<---- value of the DB -------->|      a tombstone ends behind the key
//
// The layout of timestamp and value is that of Kafka Streams' timestamped stores.
const (
	numberLen = 2
	timeLen   = 8
)

// entry refers to an encoded row. It holds no pointers: a layer has a million of them.
type entry struct {
	slab, off uint32
	klen      uint32 // without the store number; the flags are in its upper bits
	vlen      uint32 // with the timestamp, or tombstone
	prev      uint64 // position of the entry this one replaces in the view, 0 if there is none
}

const tombstone = 1<<32 - 1

// Flags of an entry. Both are kept for stores of sessions only, whose rows come and go quickly, and are settled when the
// generation is committed.
const (
	// entryBorn: below the layer there is no row of the key. A tombstone of such a row need not be written.
	entryBorn = 1 << 31
	// entryOld: a later generation of the same layer has replaced the entry.
	entryOld = 1 << 30

	klenMask = entryOld - 1
)

func (e *entry) is(flag uint32) bool { return e.klen&flag != 0 }

// idle reports whether the DB need not see the entry.
func (e *entry) idle() bool { return e.is(entryOld) || e.is(entryBorn) && e.vlen == tombstone }

const entrySize = int64(unsafe.Sizeof(entry{}))

// gen is one generation after it was sealed: its changed rows, by store and then in the order of their first change.
// Nothing in it changes once it is committed. The position of an entry is gen<<32 | index; generations count from 1, so 0
// is no position.
type gen struct {
	no      uint32
	tag     uint64 // the number of its commit, see State.Publish; 0 if it was never published
	entries []entry
	start   []uint32 // of each store in entries, and the end
	spans   []span   // of grouped stores
	floors  [][]byte // at its end
	slabs   [][]byte
	bytes   int64 // of the encoded rows
	clean   int64 // view bytes that become clean when it is committed
}

func position(no uint32, i int) uint64 { return uint64(no)<<32 | uint64(uint32(i)) }

// dbKey returns the key with the store number.
func (g *gen) dbKey(e *entry) []byte {
	end := e.off + numberLen + e.klen&klenMask
	return g.slabs[e.slab][e.off:end:end]
}

func (g *gen) key(e *entry) []byte { return g.dbKey(e)[numberLen:] }

// dbValue returns timestamp and value, nil for a tombstone.
func (g *gen) dbValue(e *entry) []byte {
	if e.vlen == tombstone {
		return nil
	}
	at := e.off + numberLen + e.klen&klenMask
	return g.slabs[e.slab][at : at+e.vlen : at+e.vlen]
}

// gens is a row of generations with consecutive numbers. Generations that were rolled back are nil.
type gens struct {
	base uint32 // number of the first
	list []*gen
}

func (s *gens) at(pos uint64) (*gen, *entry) {
	g := s.list[uint32(pos>>32)-s.base]
	return g, &g.entries[uint32(pos)]
}

func (s *gens) key(pos uint64) []byte {
	g, e := s.at(pos)
	return g.key(e)
}

// push appends g and fills the gap of rolled-back numbers.
func (s *gens) push(g *gen) {
	if len(s.list) == 0 {
		s.base = g.no
	}
	for s.base+uint32(len(s.list)) < g.no {
		s.list = append(s.list, nil)
	}
	s.list = append(s.list, g)
}

// drop forgets the generations up to that number. The old list stays as it is for whoever has a copy of s.
func (s *gens) drop(no uint32) {
	if len(s.list) == 0 || no < s.base {
		return
	}
	n := no - s.base + 1
	s.list = slices.Clone(s.list[n:])
	s.base += n
}

// slabs hands out memory for encoded rows. Generations share a slab, so that small commits do not cost one each; a slab
// lives as long as a generation or a Change refers to it. Bytes that were handed out are never written again.
type slabs struct {
	current []byte
	next    int // size of the next slab
}

const (
	minSlab = 4 << 10
	maxSlab = 256 << 10
)

// room returns an empty slice with room for about n bytes to append to.
func (s *slabs) room(n int) []byte {
	if cap(s.current)-len(s.current) < n {
		s.renew(n)
	}
	return s.current[len(s.current):]
}

func (s *slabs) renew(n int) {
	s.next = min(max(2*s.next, minSlab), maxSlab)
	s.current = make([]byte, 0, max(s.next, n))
}

// keep makes row, which was built by appending to the slice of room, part of g, and returns where. A row that has
// outgrown the room is copied.
func (s *slabs) keep(g *gen, row []byte) (slab, off uint32) {
	at := len(s.current)
	if cap(s.current)-at < len(row) || unsafe.SliceData(row) != unsafe.SliceData(s.current[at:at+1]) {
		if cap(s.current)-at < len(row) {
			s.renew(len(row))
		}
		at = len(s.current)
		copy(s.current[at:at+len(row)], row)
	}
	s.current = s.current[:at+len(row)]
	if n := len(g.slabs); n == 0 || unsafe.SliceData(g.slabs[n-1]) != unsafe.SliceData(s.current) {
		g.slabs = append(g.slabs, s.current)
	} else {
		g.slabs[n-1] = s.current
	}
	g.bytes += int64(len(row))
	return uint32(len(g.slabs) - 1), uint32(at)
}

// claim makes bytes that were built by appending to the slice of room stay. Others are left alone.
func (s *slabs) claim(b []byte) {
	at := len(s.current)
	if len(b) > 0 && cap(s.current)-at >= len(b) && unsafe.SliceData(b) == unsafe.SliceData(s.current[at:at+1]) {
		s.current = s.current[:at+len(b)]
	}
}

// appendKey appends the key of a row with its store number.
func appendKey(dst []byte, number uint16, key []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, number), key...)
}

package store

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"unsafe"
)

// inlineKey is the length up to which a key lies in its row. It makes a row with a value of 8 bytes fill 64 bytes.
const inlineKey = 20

// Row is one row of a View, present or not.
type Row[V any] struct {
	// Value, Present and Time are the row as the task sees it: read them freely, write them through View.Set and
	// View.Remove only. Value is immutable: a changed value is a new value. Time is in ms since 1970.
	Value   V
	Time    int64
	Present bool

	used  bool   // since the hand of the clock came by
	live  bool   // the slot holds a row
	fresh bool   // made in the current generation: nothing older knows of it
	touch uint32 // epoch of the view in which it was last changed
	last  uint64 // position of its newest encoding, 0 if that is in the DB, or nowhere
	mark  uint32 // generation in which it was last changed
	klen  uint32
	enc   uint32          // length of the newest encoding, if it counts for the size
	key   [inlineKey]byte // the key, or its position in the arena in the first 8 bytes
}

// slab is the unit in which a view allocates rows. Rows never move, so a pointer to one stays good.
const (
	slabBits = 8
	slabRows = 1 << slabBits
)

type slab[V any] [slabRows]Row[V]

// slotBytes is what a row costs besides its slot: the share of the table.
const slotBytes = 16

func (v *View[V]) row(i uint32) *Row[V] { return &v.slabs[i>>slabBits][i&(slabRows-1)] }

func (v *View[V]) key(r *Row[V]) []byte {
	if r.klen <= inlineKey {
		return r.key[:r.klen:r.klen]
	}
	return v.keys.get(binary.LittleEndian.Uint64(r.key[:]), r.klen)
}

func (v *View[V]) is(r *Row[V], key []byte) bool {
	return int(r.klen) == len(key) && bytes.Equal(v.key(r), key)
}

// size is what a row counts in the budgets. Values with pointers are taken for twice their encoding.
func (v *View[V]) size(r *Row[V]) int64 {
	n := int64(unsafe.Sizeof(*r)) + slotBytes
	if r.klen > inlineKey {
		n += int64(r.klen)
	}
	if v.pointers {
		n += 2 * int64(r.enc)
	}
	return n
}

// again returns the row that was last returned if it is that of key.
func (v *View[V]) again(key []byte) *Row[V] {
	if v.at >= v.rows {
		return nil
	}
	if r := v.row(v.at); r.live && v.is(r, key) {
		r.used = true
		return r
	}
	return nil
}

// find returns the row of key and its index, nil if the view does not hold it.
func (v *View[V]) find(key []byte, hash uint32) (*Row[V], uint32) {
	slots, mask := v.table.slots, v.table.mask
	if len(slots) == 0 {
		return nil, 0
	}
	for i := hash & mask; ; i = (i + 1) & mask {
		s := slots[i]
		if s == 0 {
			return nil, 0
		}
		if uint32(s>>32) == hash {
			n := uint32(s) - 1
			if r := v.row(n); v.is(r, key) {
				return r, n
			}
		}
	}
}

// insert adds a clean, absent row for a key the view does not hold. enc is the length of its encoding.
func (v *View[V]) insert(key []byte, hash uint32, enc int) *Row[V] {
	var i uint32
	if n := len(v.free); n > 0 {
		i = v.free[n-1]
		v.free = v.free[:n-1]
	} else {
		i = v.rows
		if int(i>>slabBits) == len(v.slabs) {
			v.slabs = append(v.slabs, new(slab[V]))
		}
		v.rows++
	}
	r := v.row(i)
	r.live, r.used, r.klen, r.enc = true, true, uint32(len(key)), uint32(enc)
	if len(key) <= inlineKey {
		copy(r.key[:], key)
	} else {
		binary.LittleEndian.PutUint64(r.key[:], v.keys.put(key))
	}
	v.table.insert(hash, i)
	v.at = i
	n := v.size(r)
	v.s.rowBytes += n
	v.s.cleanBytes += n
	return r
}

// drop takes a row out of the view. Its committed version, if it is in a layer, is indexed there: from now on that is
// the only way to it. The caller has taken it out of cleanBytes.
func (v *View[V]) drop(i uint32) {
	r := v.row(i)
	key := v.key(r)
	hash := v.s.hash(key)
	if !r.fresh && !v.expiredForGood(key) {
		v.s.ceilings[v.store].raise(key)
	}
	if r.last != 0 {
		v.s.index(v.store, hash, r.last)
	}
	v.s.rowBytes -= v.size(r)
	v.table.remove(hash, i)
	if r.klen > inlineKey {
		v.keys.free(r.klen)
	}
	*r = Row[V]{}
	v.free = append(v.free, i)
	if v.keys.wasteful() {
		v.copyKeys()
	}
}

// copyKeys moves the long keys into a new arena and leaves the gaps behind. Keys handed out keep the old one alive.
func (v *View[V]) copyKeys() {
	var to arena
	for i := range v.rows {
		if r := v.row(i); r.live && r.klen > inlineKey {
			binary.LittleEndian.PutUint64(r.key[:], to.put(v.key(r)))
		}
	}
	v.keys = to
}

func (v *View[V]) sweep(n int) (wrapped bool) {
	for range n {
		if v.hand >= v.rows {
			v.hand = 0
			return true
		}
		i := v.hand
		v.hand++
		r := v.row(i)
		// The row that was last returned stays: its caller may be about to write to it.
		if !r.live || r.mark > v.s.committed || i == v.at {
			continue
		}
		expired := v.expired(v.key(r))
		if r.used && !expired {
			r.used = false
			continue
		}
		v.s.cleanBytes -= v.size(r)
		if !expired {
			v.checkClean(r)
		}
		v.drop(i)
	}
	return false
}

// hasPointers reports whether values of t make the garbage collector look into their slab.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if hasPointers(f.Type) {
				return true
			}
		}
		return false
	}
	return true
}

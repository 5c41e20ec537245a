package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// seal encodes the dirty rows into g and calls emit for them.
func (v *View[V]) seal(g *gen, emit func(Change) error) error {
	s := v.s
	if v.groups != nil {
		v.dirty = v.groups.rows(v.dirty[:0])
	}
	v.sealed, v.dirty = v.dirty, v.sealed[:0]
	v.newEpoch()
	v.leaveOut()
	layout := s.layouts[v.store]
	g.entries = slices.Grow(g.entries, len(v.sealed))
	number := s.numbers[v.store]
	kind := s.specs[v.store].Kind
	trimmed := kind.Trimmed()
	quiet := !s.specs[v.store].Changelog || emit == nil
	for _, i := range v.sealed {
		r := v.row(i)
		key := v.key(r)
		head := numberLen + len(key)
		row := appendKey(s.slabs.room(head+timeLen+int(v.mean)+16), number, key)
		if r.Present {
			var err error
			row = binary.BigEndian.AppendUint64(row, uint64(r.Time))
			if row, err = v.codec.Append(row, r.Value); err != nil {
				return fmt.Errorf("store: %s: encode the value of %q: %w", v.id(), key, err)
			}
		}
		e := entry{klen: uint32(len(key)), vlen: tombstone, prev: r.last}
		if r.fresh && v.brief {
			e.klen |= entryBorn
		}
		r.fresh = false
		e.slab, e.off = s.slabs.keep(g, row)
		if r.Present {
			e.vlen = uint32(len(row) - head)
		}
		r.last = position(g.no, len(g.entries))
		if v.groups != nil {
			g.addSpan(v.store, prefixOf(key))
		}
		g.entries = append(g.entries, e)
		if err := v.settle(r, g, len(row)-head); err != nil {
			return err
		}
		g.clean += v.size(r)
		if quiet {
			continue
		}
		c := Change{Store: v.store, Key: g.key(&e), Time: r.Time}
		if b := g.dbValue(&e); b != nil {
			c.Value = b[timeLen:]
		}
		if trimmed {
			c.Group = kind.Group(c.Key)
		}
		if layout != nil {
			c.Key, c.Value, c.Header = layout.Export(s.exported.room(len(key)+maxSuffix), c.Key, c.Value)
			if c.Key == nil {
				continue
			}
			s.exported.claim(c.Key)
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// settle corrects the size of a row that was just encoded and, if the codec aliases, replaces its value by one that
// does not hold on to what the user made it from, which is often a fetched batch.
func (v *View[V]) settle(r *Row[V], g *gen, enc int) error {
	if !v.pointers {
		return nil
	}
	v.mean += (int64(enc) - v.mean) / 8
	before := v.size(r)
	r.enc = uint32(enc)
	v.s.rowBytes += v.size(r) - before
	if !v.aliases || !r.Present {
		return nil
	}
	b := g.dbValue(&g.entries[len(g.entries)-1])
	val, err := v.decode(b[timeLen:])
	if err != nil {
		return err
	}
	r.Value = val
	return nil
}

// newEpoch forgets what Drain has not asked for, and the order of the dirty rows.
func (v *View[V]) newEpoch() {
	v.epoch++
	v.changed = v.changed[:0]
	clear(v.olds)
	v.olds = v.olds[:0]
	v.dirtyRuns, v.dirtySeen, v.sealedRun = nil, 0, nil
	if v.groups != nil {
		v.groups.reset()
	}
}

// leaveOut takes rows out of the sealed ones that nobody will hear of: those below the floor, which come back if the
// generation is rolled back, and those that were made in it and removed again.
func (v *View[V]) leaveOut() {
	if len(v.floor) == 0 && !v.anyFresh {
		return
	}
	kept := v.sealed[:0]
	for _, i := range v.sealed {
		r := v.row(i)
		switch {
		case v.expired(v.key(r)):
			v.dead = append(v.dead, i)
		case r.fresh && !r.Present:
			v.drop(i)
		default:
			kept = append(kept, i)
		}
	}
	v.sealed, v.anyFresh = kept, false
}

func (v *View[V]) promoted() {
	if v.brief {
		v.retire()
	}
	for _, i := range v.dead {
		v.drop(i)
	}
	v.dead = v.dead[:0]
	v.sealed = v.sealed[:0]
	v.sealedRun = nil
}

// retire settles the flags of the entries of the generation that has just been committed, and takes removed rows out of
// the view: in a brief store nobody asks for a row that is not there.
func (v *View[V]) retire() {
	s := v.s
	g := s.committedGens.list[len(s.committedGens.list)-1]
	from := g.start[v.store]
	for n, i := range v.sealed {
		e := &g.entries[from+uint32(n)]
		if uint32(e.prev>>32) > s.frozenTo {
			_, before := s.committedGens.at(e.prev)
			e.klen = e.klen&^entryBorn | before.klen&entryBorn
			atomic.OrUint32(&before.klen, entryOld) // readers may look at it, see Reading
		}
		if r := v.row(i); !r.Present && r.mark == g.no && i != v.at {
			s.cleanBytes -= v.size(r)
			r.last = 0
			v.drop(i)
		}
	}
}

func (v *View[V]) rollback(g *gen) {
	if g != nil {
		// What Seal has got to see gives the rows their committed positions back.
		entries := g.entries
		if v.store+1 < len(g.start) {
			entries = entries[:g.start[v.store+1]]
		}
		if v.store < len(g.start) {
			entries = entries[g.start[v.store]:]
		} else {
			entries = nil
		}
		for n := range entries {
			v.row(v.sealed[n]).last = entries[n].prev
		}
	}
	for _, list := range [...][]uint32{v.sealed, v.dirty, v.dead} {
		for _, i := range list {
			if r := v.row(i); r.live && r.mark > v.s.committed {
				v.drop(i)
			}
		}
	}
	v.sealed, v.dirty, v.dead, v.anyFresh = v.sealed[:0], v.dirty[:0], v.dead[:0], false
	v.newEpoch()
}

package store

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// seal encodes the dirty rows into g and calls emit for them.
func (v *View[V]) seal(g *gen, emit func(Change) error) error {
	s := v.s
	v.sealed, v.dirty = v.dirty, v.sealed[:0]
	v.newEpoch()
	g.entries = slices.Grow(g.entries, len(v.sealed))
	number := s.numbers[v.store]
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
		e.slab, e.off = s.slabs.keep(g, row)
		if r.Present {
			e.vlen = uint32(len(row) - head)
		}
		r.last = position(g.no, len(g.entries))
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
}

func (v *View[V]) promoted() {
	v.sealed = v.sealed[:0]
	v.sealedRun = nil
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
	for _, list := range [...][]uint32{v.sealed, v.dirty} {
		for _, i := range list {
			if r := v.row(i); r.live && r.mark > v.s.committed {
				v.drop(i)
			}
		}
	}
	v.sealed, v.dirty = v.sealed[:0], v.dirty[:0]
	v.newEpoch()
}

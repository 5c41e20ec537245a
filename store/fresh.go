package store

import "encoding/binary"

// A fresh row was made in the current generation for a key of which nothing older knows: no generation, no layer, not the
// DB. Removed again, it leaves without a trace, and it may change its key in place. Sessions that grow with every record,
// and their due times, would otherwise leave a removed row per record.

// create returns an absent row for a key that the caller knows to be absent, or the row the view has.
func (v *View[V]) create(key []byte) (*Row[V], error) {
	if v.expired(key) {
		return nil, ErrExpired
	}
	hash := v.s.hash(key)
	if r, i := v.find(key, hash); r != nil {
		r.used = true
		v.at = i
		v.refresh(r)
		return r, nil
	}
	r := v.admit(key, hash, 0)
	r.fresh, v.anyFresh = true, true
	return r, nil
}

// refresh makes a row fresh that was read, is absent, and has not been changed since the last commit.
func (v *View[V]) refresh(r *Row[V]) {
	if !r.Present && r.mark <= v.s.committed {
		r.fresh, v.anyFresh = true, true
	}
}

// rekey gives a fresh, dirty row another key that the view does not hold and that is absent below. It must be the row
// last returned.
func (v *View[V]) rekey(r *Row[V], key []byte) {
	old := v.key(r)
	v.s.rowBytes -= v.size(r)
	v.table.remove(v.s.hash(old), v.at)
	if r.klen > inlineKey {
		v.keys.free(r.klen)
	}
	r.klen = uint32(len(key))
	if len(key) <= inlineKey {
		copy(r.key[:], key)
	} else {
		binary.LittleEndian.PutUint64(r.key[:], v.keys.put(key))
	}
	v.table.insert(v.s.hash(key), v.at)
	v.s.rowBytes += v.size(r)
	if v.dirtySeen > 0 {
		v.dirtyRuns, v.dirtySeen = nil, 0
	}
	if v.keys.wasteful() {
		v.copyKeys()
	}
}

// move puts a value under the key to and removes the row under from, if that is another one. The caller knows that there
// is nothing under to, unless surely is false.
func (v *View[V]) move(from, to []byte, val V, time int64, surely bool) error {
	if !v.expired(from) {
		r := v.again(from)
		if r == nil {
			if hit, i := v.find(from, v.s.hash(from)); hit != nil {
				r, v.at = hit, i
			}
		}
		if r != nil && r.fresh && r.last == 0 && r.mark == v.s.cur {
			if hit, _ := v.find(to, v.s.hash(to)); hit == nil && !v.expired(to) {
				v.rekey(r, to)
				v.Set(r, val, time)
				return nil
			}
		}
		if r == nil || v.wantOld {
			if err := v.Delete(from, time); err != nil {
				return err
			}
		} else {
			v.Remove(r, time)
		}
	}
	return v.putNew(to, val, time, surely)
}

// putNew is Put for a key that is not in the store.
func (v *View[V]) putNew(key []byte, val V, time int64, surely bool) error {
	r, err := v.blindOr(key, surely)
	if err == nil {
		v.Set(r, val, time)
	}
	return err
}

func (v *View[V]) blindOr(key []byte, surely bool) (*Row[V], error) {
	if surely {
		return v.create(key)
	}
	return v.blind(key)
}

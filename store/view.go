package store

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/internal/invariants"
)

// View is the typed form of one store: a hash table of decoded rows above the committed layer and the DB. A
// row is decoded when it is first asked for and encoded once per generation that changed it. It also remembers keys
// that have no value.
type View[V any] struct {
	s        *State
	store    int
	codec    codec.Codec[V]
	null     codec.Nullable[V] // nil: V has no value for null
	aliases  bool              // decoded values share memory with their encoding
	pointers bool              // V holds pointers: its size is a guess
	wantOld  bool

	table table
	slabs []*slab[V]
	rows  uint32   // slots ever used
	free  []uint32 // of them empty
	keys  arena
	hand  uint32 // of the clock
	at    uint32 // row that was last returned
	epoch uint32 // moves with Drain, Seal and Rollback; a row touched in this epoch needs no bookkeeping
	mean  int64  // of the encoded lengths, for the size of values not yet encoded

	dirty     []uint32 // rows changed in the current generation, in the order of their first change
	sealed    []uint32 // rows of the sealed generation, in the order of its entries
	dead      []uint32 // rows of it that are not among its entries, because they had expired
	floor     []byte
	groups    *groups  // of a grouped store
	anyFresh  bool     // some dirty row is fresh
	brief     bool     // of sessions: rows come and go quickly, and only those that are there are asked for
	changed   []uint32 // rows changed since the last Drain
	olds      []old[V] // their former values, if wantOld
	dirtyRuns [][]uint32
	dirtySeen int // how many of dirty are in dirtyRuns
	sealedRun []uint64
}

type old[V any] struct {
	value   V
	present bool
}

// ViewOf returns the view of a store. It is the same view on every call for one State; V must be the same, too.
func ViewOf[V any](s *State, store string, c codec.Codec[V]) (*View[V], error) {
	i := slices.IndexFunc(s.specs, func(spec Spec) bool { return spec.ID == store })
	if i < 0 {
		return nil, fmt.Errorf("store: view of %s: not declared", store)
	}
	if s.views[i] != nil {
		v, ok := s.views[i].(*View[V])
		if !ok {
			return nil, fmt.Errorf("store: view of %s: it holds another type than %v", store, reflect.TypeFor[V]())
		}
		return v, nil
	}
	v := &View[V]{s: s, store: i, codec: c, pointers: hasPointers(reflect.TypeFor[V]()), epoch: 1, floor: s.floors[i]}
	v.brief = s.specs[i].Kind == Session
	if s.specs[i].Kind.grouped() {
		v.groups = newGroups()
	}
	v.null, _ = c.(codec.Nullable[V])
	a, known := c.(codec.Aliasing)
	v.aliases = v.pointers && (!known || a.Aliases())
	s.views[i] = v
	return v, nil
}

// Row finds or loads the row of key. The pointer is valid until the next call on the view; calls on other views leave
// it valid. The error is ErrExpired if the row is below the floor of the store.
func (v *View[V]) Row(key []byte) (*Row[V], error) {
	if v.expired(key) {
		return nil, ErrExpired
	}
	hash := v.s.hash(key)
	if r, i := v.find(key, hash); r != nil {
		r.used = true
		v.at = i
		return r, nil
	}
	return v.load(key, hash)
}

// load brings a committed row, or the knowledge that there is none, into the view.
func (v *View[V]) load(key []byte, hash uint32) (*Row[V], error) {
	row, ok, pos, err := v.s.read(v.store, key, hash)
	if err != nil {
		return nil, err
	}
	var val V
	var time int64
	if ok {
		var b []byte
		time, b = splitRow(row)
		if val, err = v.decode(b); err != nil {
			return nil, err
		}
	}
	r := v.admit(key, hash, len(row))
	r.Value, r.Time, r.Present, r.last = val, time, ok, pos
	return r, nil
}

// decode returns a value that does not pin or share b.
func (v *View[V]) decode(b []byte) (V, error) {
	if v.aliases {
		b = bytes.Clone(b)
	}
	val, err := v.codec.Decode(b)
	if err != nil {
		return val, fmt.Errorf("store: %s: decode: %w", v.id(), err)
	}
	return val, nil
}

// admit inserts a row after making room for it.
func (v *View[V]) admit(key []byte, hash uint32, enc int) *Row[V] {
	size := v.rowSize(len(key), enc)
	if v.s.cleanBytes+size > v.s.o.ViewBytes {
		v.s.makeRoom(size)
	}
	return v.insert(key, hash, enc)
}

func (v *View[V]) rowSize(klen, enc int) int64 {
	return v.size(&Row[V]{klen: uint32(klen), enc: uint32(enc)})
}

func (v *View[V]) id() string { return v.s.specs[v.store].ID }

// blind returns the row of key without reading it from the layer or DB, for a write that does not care.
func (v *View[V]) blind(key []byte) (*Row[V], error) {
	if v.wantOld {
		return v.Row(key)
	}
	if v.expired(key) {
		return nil, ErrExpired
	}
	hash := v.s.hash(key)
	if r, i := v.find(key, hash); r != nil {
		r.used = true
		v.at = i
		return r, nil
	}
	return v.admit(key, hash, 0), nil
}

// Set changes a row that Row has just returned. A value that stands for null (codec.Nullable) removes it.
func (v *View[V]) Set(r *Row[V], val V, time int64) {
	if v.null != nil && v.null.IsNull(val) {
		v.Remove(r, time)
		return
	}
	if r.touch != v.epoch {
		v.change(r)
	}
	r.Value, r.Time, r.Present = val, time, true
}

// Remove removes a row that Row has just returned.
func (v *View[V]) Remove(r *Row[V], time int64) {
	if r.touch != v.epoch {
		v.change(r)
	}
	var zero V
	r.Value, r.Time, r.Present = zero, time, false
}

// change does the bookkeeping for the first change of a row in an epoch.
func (v *View[V]) change(r *Row[V]) {
	i := v.at
	if v.row(i) != r {
		panic("store: write to a row that is not the one last returned")
	}
	if s := v.s; r.mark != s.cur {
		switch size := v.size(r); {
		case r.mark <= s.committed:
			s.cleanBytes -= size
		default: // sealed: it will not become clean when that generation commits
			s.sealed.clean -= size
		}
		s.overlay += v.rowSize(int(r.klen), int(max(v.mean, int64(r.enc))))
		r.mark = s.cur
		v.dirty = append(v.dirty, i)
		if v.groups != nil {
			v.groups.add(v.key(r), i)
		}
	}
	r.touch = v.epoch
	v.changed = append(v.changed, i)
	if v.wantOld {
		v.olds = append(v.olds, old[V]{r.Value, r.Present})
	}
}

// Get returns the value of key and whether there is one.
func (v *View[V]) Get(key []byte) (V, bool, error) {
	r, err := v.Row(key)
	if err != nil {
		var zero V
		if err == ErrExpired {
			err = nil
		}
		return zero, false, err
	}
	return r.Value, r.Present, nil
}

// Put sets the value of key. It reads nothing unless EnableOld was called.
func (v *View[V]) Put(key []byte, val V, time int64) error {
	r, err := v.blind(key)
	if err == nil {
		v.Set(r, val, time)
	}
	return err
}

// Delete removes the row of key. It reads nothing unless EnableOld was called.
func (v *View[V]) Delete(key []byte, time int64) error {
	r, err := v.blind(key)
	if err == nil {
		v.Remove(r, time)
	}
	return err
}

// EnableOld makes Drain report the values before the change. Call it before the first write.
func (v *View[V]) EnableOld() { v.wantOld = true }

// Drain calls fn once for every row changed in the current generation since the last Drain, in the order of their
// first change. old is the value before that change, if EnableOld was called. fn may write to the view; rows it changes
// belong to the next Drain. An error ends Drain and comes back; the rest is lost to later Drains.
func (v *View[V]) Drain(fn func(key []byte, old V, hadOld bool, r *Row[V]) error) error {
	rows, olds := v.changed, v.olds
	v.changed, v.olds = nil, nil
	v.epoch++
	var none old[V]
	for n, i := range rows {
		o := &none
		if v.wantOld {
			o = &olds[n]
		}
		r := v.row(i)
		if v.expired(v.key(r)) {
			continue
		}
		v.at = i
		if err := fn(v.key(r), o.value, o.present, r); err != nil {
			return err
		}
	}
	if v.changed == nil { // keep the memory for the next time
		clear(olds)
		v.changed, v.olds = rows[:0], olds[:0]
	}
	return nil
}

// checkClean catches a value that was changed in place: the encoding of a clean row must be the committed one.
func (v *View[V]) checkClean(r *Row[V]) {
	if !invariants.Enabled {
		return
	}
	var row []byte
	key := v.key(r)
	if uint32(r.last>>32) > v.s.persisted {
		row = v.s.committedGens.value(r.last)
	} else if got, ok, err := v.s.db.Get(nil, appendKey(nil, v.s.numbers[v.store], key)); err != nil {
		return
	} else if ok {
		row = got
	}
	invariants.Check(r.Present == (row != nil), "store %s: clean row %q is present %v", v.id(), key, r.Present)
	if row == nil {
		return
	}
	if enc, err := v.codec.Append(nil, r.Value); err == nil {
		_, want := splitRow(row)
		if !bytes.Equal(enc, want) { // bytes of an earlier version of the values become those of the present one
			if was, err := v.codec.Decode(want); err == nil {
				want, _ = v.codec.Append(nil, was)
			}
		}
		invariants.Check(bytes.Equal(enc, want), "store %s: the value of %q was changed in place: %q, committed %q",
			v.id(), key, enc, want)
	}
}

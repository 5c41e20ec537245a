package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// ErrOutdated is returned by reads of a Reading that is so old that the DB has gone past it. A newer one has been
// published.
var ErrOutdated = errors.New("store: the state has moved on")

// Reading is the committed rows of a State as of one commit. Unlike everything else here it is for any number of
// goroutines, beside the worker and without delaying it: it looks at generations that no longer change and at the DB, and
// never at the views, whose rows are the worker's. What it needs to find rows in the generations it makes when it is first
// asked, so that a State that nobody asks pays for a few words per commit.
//
// It holds on to the memory of the layers it was made with, so nobody should keep one for long.
type Reading struct {
	// Seq is what Publish was told.
	Seq uint64

	db      DB
	gate    *gate
	index   *index
	ahead   *atomic.Uint32
	seed    maphash.Seed
	specs   []Spec
	numbers []uint16
	floors  [][]byte

	gens                 gens
	persisted, committed uint32

	once   sync.Once
	blocks []*block // newest first
}

// Publish returns the committed rows as they are now, for readers. It is called after Commit and after Finish; seq is the
// number of the last commit as the caller counts them. It takes constant time.
func (s *State) Publish(seq uint64) *Reading {
	if n := len(s.committedGens.list); n > 0 {
		if g := s.committedGens.list[n-1]; g.tag == 0 {
			g.tag = seq
		}
	}
	s.finder.drop(s.persisted)
	return &Reading{
		Seq: seq, db: s.db, gate: s.gate, index: s.finder, ahead: &s.ahead, seed: s.seed, specs: s.specs, numbers: s.numbers,
		floors: s.committedFloors, gens: s.committedGens, persisted: s.persisted, committed: s.committed,
	}
}

// lookup returns the blocks that hold the generations of the reading, newest first.
func (r *Reading) lookup() []*block {
	r.once.Do(func() { r.blocks = r.index.cover(&r.gens, r.persisted, r.committed) })
	return r.blocks
}

// Get appends the row of a key in the store with that index in the specs: the timestamp, 8 bytes big-endian, and the
// value. The error is ErrOutdated if a newer reading must be asked, ErrClosed if the State is closed.
func (r *Reading) Get(dst []byte, store int, key []byte) (row []byte, ok bool, err error) {
	if bytes.Compare(key, r.floors[store]) < 0 {
		return dst, false, nil
	}
	hash := uint32(maphash.Bytes(r.seed, key))
	for _, b := range r.lookup() {
		if g, e := b.find(store, hash, key); e != nil {
			v := g.sharedValue(e)
			return append(dst, v...), v != nil, nil
		}
	}
	err = r.gate.read(func() error {
		k := appendKey(make([]byte, 0, numberLen+len(key)), r.numbers[store], key)
		row, ok, err = r.db.Get(dst, k)
		return err
	})
	if err == nil && r.outdated() {
		err = ErrOutdated
	}
	if err != nil {
		return dst, false, fmt.Errorf("store: %s: read: %w", r.specs[store].ID, err)
	}
	return row, ok, nil
}

// outdated says whether the DB may hold generations later than the reading. It is asked after the DB was read: generations
// reach it only after they were announced here.
func (r *Reading) outdated() bool { return r.ahead.Load() > r.committed }

// Group returns the first eight bytes of the first key at or behind at in a store of kind Window, whose rows are in groups
// by their ends. The group may turn out to be empty.
func (r *Reading) Group(store int, at []byte) (prefix []byte, ok bool, err error) {
	if bytes.Compare(at, r.floors[store]) < 0 {
		at = r.floors[store]
	}
	from := prefixAt(at, 0)
	first, found := uint64(math.MaxUint64), false
	for _, g := range r.gens.list {
		if g == nil || g.no <= r.persisted {
			continue
		}
		for _, sp := range g.spans {
			if sp.store == store && sp.prefix >= from && sp.prefix <= first {
				first, found = sp.prefix, true
			}
		}
	}
	it, err := r.scanDB(store, at, nil)
	if err != nil {
		return nil, false, err
	}
	if it.Next() {
		if p := prefixOf(it.Key()); p <= first {
			first, found = p, true
		}
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return nil, false, fmt.Errorf("store: %s: read: %w", r.specs[store].ID, err)
	}
	return AppendTimeKey(nil, int64(first^1<<63)), found, nil
}

// Since calls fn for the changes that commits after number seq, up to that of the reading, have made to a store, newest
// first: of several changes of a key only the first call counts. A nil row was removed. Both slices stay valid and must not
// be changed. It returns false, without a call, if changes after seq are no longer in memory.
func (r *Reading) Since(seq uint64, store int, fn func(key, row []byte)) bool {
	if seq >= r.Seq {
		return true
	}
	list := r.gens.list
	from := -1
	for i := len(list) - 1; i >= 0; i-- {
		if g := list[i]; g != nil && g.tag <= seq+1 {
			if g.tag == seq+1 {
				from = i
			}
			break
		}
	}
	if from < 0 {
		return false
	}
	for i := len(list) - 1; i >= from; i-- {
		g := list[i]
		if g == nil {
			continue
		}
		for j := int(g.start[store+1]) - 1; j >= int(g.start[store]); j-- {
			e := &g.entries[j]
			if key := g.sharedKey(e); bytes.Compare(key, r.floors[store]) >= 0 {
				fn(key, g.sharedValue(e))
			}
		}
	}
	return true
}

// OpenReading returns the rows of a DB that no State has open, for readers, beside somebody who loads runs into it: a
// scan shows whole runs, but later ones than an earlier read did. The caller calls done before the DB has another
// owner; it does not wait for readers that hold iterators.
func OpenReading(db DB, specs []Spec, seq uint64) (r *Reading, done func() error, err error) {
	_, c, _, err := readMeta(db)
	if err != nil {
		return nil, nil, err
	}
	specs, _ = withDues(specs)
	numbers, _, err := c.resolve(specs)
	if err != nil {
		return nil, nil, err
	}
	floors, err := readFloors(db, numbers)
	if err != nil {
		return nil, nil, err
	}
	seed, g := maphash.MakeSeed(), newGate()
	return &Reading{
		Seq: seq, db: db, gate: g, index: newIndex(seed), ahead: new(atomic.Uint32), seed: seed, specs: specs,
		numbers: numbers, floors: floors,
	}, g.close, nil
}

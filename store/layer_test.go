package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sortItems against the standard library, with keys that share prefixes, end in zeroes, and repeat.
func TestSortItems(t *testing.T) {
	for n := range 60 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		size := 1 + rng.IntN(3000)
		keys := make([][]byte, size)
		for i := range keys {
			switch n % 5 {
			case 0: // random lengths over a small alphabet
				keys[i] = make([]byte, rng.IntN(20))
				for j := range keys[i] {
					keys[i][j] = byte(rng.IntN(2))
				}
			case 1: // a long common prefix
				keys[i] = fmt.Appendf(nil, "customer-number-%d", rng.IntN(size))
			case 3: // zeroes: short keys are filled up with them
				keys[i] = make([]byte, rng.IntN(30))
			case 2: // few distinct keys of eight bytes
				keys[i] = fmt.Appendf(nil, "%08d", rng.IntN(3))
			default:
				keys[i] = make([]byte, 16)
				for j := range keys[i] {
					keys[i][j] = byte(rng.Uint32())
				}
			}
		}
		items := make([]item, size)
		for i := range items {
			items[i].pos = uint64(size - 1 - i) // newest first, as collect gathers them
		}
		key := func(pos uint64) []byte { return keys[pos] }
		sortItems(items, make([]item, size), commonPrefix(items, key), key)
		ok := slices.IsSortedFunc(items, func(a, b item) int {
			return cmp.Or(bytes.Compare(key(a.pos), key(b.pos)), cmp.Compare(b.pos, a.pos))
		})
		if !ok {
			t.Errorf("seed %d, kind %d: not sorted", seed, n%5)
		}
	}
}

// table against a map.
func TestTable(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var tab table
	model := map[uint32]uint32{} // reference to hash
	for range 20_000 {
		ref := uint32(rng.IntN(300))
		if hash, ok := model[ref]; ok {
			tab.remove(hash, ref)
			delete(model, ref)
		} else {
			hash := uint32(rng.IntN(50)) * 0x10001 // many collisions
			tab.insert(hash, ref)
			model[ref] = hash
		}
	}
	found := map[uint32]uint32{}
	for ref, hash := range model {
		for i := hash & tab.mask; tab.slots[i] != 0; i = (i + 1) & tab.mask {
			if s := tab.slots[i]; uint32(s>>32) == hash && uint32(s) == ref+1 {
				found[ref] = hash
			}
		}
	}
	if len(found) != len(model) || tab.n != len(model) {
		t.Errorf("seed %d: %d of %d found, %d counted", seed, len(found), len(model), tab.n)
	}
}

// flakyDB fails on demand.
type flakyDB struct {
	DB
	err     error
	loads   int
	applies int
	flushes int
}

func (d *flakyDB) Load(r Run) error {
	if d.err != nil {
		return d.err
	}
	d.loads++
	return d.DB.Load(r)
}

func (d *flakyDB) Apply(b *Batch) error {
	if d.err != nil {
		return d.err
	}
	d.applies++
	return d.DB.Apply(b)
}

func (d *flakyDB) Flush() error {
	d.flushes++
	return d.DB.Flush()
}

// D-DISK-FULL: a layer whose write has failed stays readable, and is written later with what was committed since.
func TestDDiskFullPersist(t *testing.T) {
	db := &flakyDB{DB: NewMem()}
	s := openWith(t, db, Spec{ID: "a"})
	v := viewOf[int64](t, s, "a")
	put(t, v, "k", 1)
	db.err = ErrStorage
	if err := errors.Join(s.Seal(nil), s.Commit([]byte("1"), 0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Persist(0, true); !errors.Is(err, ErrStorage) {
			t.Fatalf("persist: %v", err)
		}
		put(t, v, "k", 2)
		put(t, v, "l", 2)
		s.Rollback()
		wantValue(t, v, "k", 1, true)
		wantValue(t, v, "l", 0, false)
	}
	put(t, v, "l", 3)
	if err := errors.Join(s.Seal(nil), s.Commit([]byte("2"), 0)); err != nil {
		t.Fatal(err)
	}
	if s.Progress() != nil {
		t.Errorf("progress %q", s.Progress())
	}
	db.err = nil
	if err := s.Persist(0, true); err != nil {
		t.Fatal(err)
	}
	s = openWith(t, db, Spec{ID: "a"})
	v = viewOf[int64](t, s, "a")
	wantValue(t, v, "k", 1, true)
	wantValue(t, v, "l", 3, true)
	if string(s.Progress()) != "2" {
		t.Errorf("progress %q", s.Progress())
	}
}

// Small layers go in as batches, which are flushed once a minute, large ones as runs.
func TestPersistChoosesItsWay(t *testing.T) {
	db := &flakyDB{DB: NewMem()}
	s := openWith(t, db, Spec{ID: "a"})
	v := viewOf[int64](t, s, "a")
	persist := func(rows int, now int64) string {
		for n := range rows {
			put(t, v, fmt.Sprint(n), now)
		}
		if err := errors.Join(s.Seal(nil), s.Commit(nil, now), s.Persist(now, true)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(db.applies, db.loads, db.flushes)
	}
	for _, c := range []struct {
		rows int
		now  int64
		want string
	}{
		{1, 1000, "1 0 0"}, {maxApply, 31_000, "2 0 0"}, {1, 60_999, "3 0 0"}, {1, 61_000, "4 0 1"},
		{1, 62_000, "5 0 1"}, {maxApply + 1, 63_000, "5 1 1"}, {1, 122_500, "6 1 1"},
	} {
		if got := persist(c.rows, c.now); got != c.want {
			t.Errorf("%d rows at %d: batches, runs, flushes are %s, want %s", c.rows, c.now, got, c.want)
		}
	}
	if err := s.Close(); err != nil || db.flushes != 2 {
		t.Errorf("close: %d flushes, %v", db.flushes, err)
	}
}

// The limits of a layer: bytes, records, age.
func TestFreezeLimits(t *testing.T) {
	commit := func(s *State, v *View[string], now int64, keys ...string) {
		t.Helper()
		for _, k := range keys {
			put(t, v, k, "0123456789")
		}
		if err := errors.Join(s.Seal(nil), s.Commit(nil, now)); err != nil {
			t.Fatal(err)
		}
	}
	open := func(o Options) (*State, *View[string]) {
		s, err := Open(NewMem(), []Spec{{ID: "a"}}, o)
		if err != nil {
			t.Fatal(err)
		}
		return s, viewOf[string](t, s, "a")
	}
	s, v := open(Options{LayerRecords: 3})
	commit(s, v, 0, "a", "b")
	if s.Freeze(0, false) != nil {
		t.Error("two records")
	}
	commit(s, v, 0, "a")
	if m := s.Memory(); m.LayerRecords != 3 || m.Layer < 3*20 || m.Frozen != 0 {
		t.Errorf("memory %+v", m)
	}
	if s.Freeze(0, false) == nil {
		t.Error("three records: a restart would replay all three")
	}
	if m := s.Memory(); m.FrozenRecords != 3 || m.LayerRecords != 0 || m.Layer != 0 {
		t.Errorf("memory %+v", m)
	}
	s, v = open(Options{LayerBytes: 200})
	commit(s, v, 0, "a", "b")
	if s.Freeze(0, false) != nil {
		t.Error("100 bytes")
	}
	commit(s, v, 0, "c", "d", "e", "f")
	if s.Freeze(0, false) == nil {
		t.Error("300 bytes")
	}
	s, v = open(Options{})
	commit(s, v, 5000, "a")
	commit(s, v, 30_000, "b")
	if s.Freeze(34_999, false) != nil || s.Freeze(35_000, false) == nil {
		t.Error("age of the oldest commit")
	}
}

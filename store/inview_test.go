package store

import (
	"fmt"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

// askedDB counts how often the DB is asked for a row.
type askedDB struct {
	DB
	gets int
}

func (d *askedDB) Get(dst, key []byte) ([]byte, bool, error) {
	d.gets++
	return d.DB.Get(dst, key)
}

// New keys of a store that began empty cost no look into the DB, until a row has left the view.
func TestNewKeysAreNotLookedFor(t *testing.T) {
	specs := []Spec{{ID: "s", KeySchema: "string", ValueSchema: "int64", Changelog: true}}
	mem := NewMem()
	// Not in ascending order: what is above everything the DB holds is never looked for.
	key := func(i int) []byte { return fmt.Appendf(nil, "key-%05d", i*617%10007) }
	fill := func(o Options, from, to int) (gets int) {
		t.Helper()
		db := &askedDB{DB: mem}
		s, err := Open(db, specs, o)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ViewOf(s, "s", codec.Int64())
		if err != nil {
			t.Fatal(err)
		}
		db.gets = 0
		for i := from; i < to; i++ {
			r, err := v.Row(key(i))
			if err != nil {
				t.Fatal(err)
			}
			if r.Present {
				t.Fatalf("key %d is there", i)
			}
			v.Set(r, int64(i), 0)
			if i%10 == 9 {
				if err := s.Seal(func(Change) error { return nil }); err != nil {
					t.Fatal(err)
				}
				if err := s.Commit(nil, 0); err != nil {
					t.Fatal(err)
				}
				if err := s.Persist(0, true); err != nil {
					t.Fatal(err)
				}
			}
		}
		gets = db.gets
		for i := range to {
			if n, ok, err := v.Get(key(i)); err != nil || !ok || n != int64(i) {
				t.Fatalf("key %d: %d, %v, %v", i, n, ok, err)
			}
		}
		return gets
	}
	if n := fill(Options{}, 0, 1000); n != 0 {
		t.Errorf("the DB was asked %d times for new keys", n)
	}
	if n := fill(Options{}, 1000, 1010); n != 10 {
		t.Errorf("a DB with rows was asked %d times, want 10", n)
	}
	mem = NewMem()
	if n := fill(Options{ViewBytes: 10_000}, 0, 1000); n == 0 {
		t.Error("the DB was not asked although rows have left the view")
	}
}

package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// Bulk against maps, with limits that make it spill.
func TestBulk(t *testing.T) {
	for _, limit := range []int64{0, 1, 2000, 20_000} {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("limit=%d/seed=%d", limit, seed), func(t *testing.T) { testBulk(t, limit, seed) })
	}
}

func testBulk(t *testing.T, limit int64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	specs := []Spec{{ID: "a"}, {ID: "b"}}
	models := []map[string]string{{}, {}}
	db := NewMem()
	for round := range 3 {
		b, err := NewBulk(db, specs, limit)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			store, key := rng.IntN(2), fmt.Sprint(rng.IntN(100))
			if rng.IntN(20) == 0 {
				key = ""
			}
			var value []byte
			if rng.IntN(3) > 0 {
				value = append([]byte{}, fmt.Sprint(rng.IntN(2000))...)
				models[store][key] = string(value)
			} else {
				delete(models[store], key)
			}
			buf := []byte(key)
			if err := b.Add(store, buf, value, nil, int64(rng.IntN(10))); err != nil {
				t.Fatal(err)
			}
			clear(buf) // it must have copied what it keeps
			clear(value)
		}
		if err := b.Finish(fmt.Append(nil, round)); err != nil {
			t.Fatal(err)
		}
		s := openWith(t, db, specs...)
		if string(s.Progress()) != fmt.Sprint(round) || s.Added() != nil {
			t.Errorf("progress %q, added %q", s.Progress(), s.Added())
		}
		for i, spec := range specs {
			v := viewOf[string](t, s, spec.ID)
			got := map[string]string{}
			c, err := v.Scan(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for c.Next() {
				if got[string(c.Key())], err = c.Value(); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Close(); err != nil || !maps.Equal(got, models[i]) {
				t.Fatalf("round %d, store %s: %v %q, want %q", round, spec.ID, err, got, models[i])
			}
		}
	}
}

// The time of the last value counts, also where only the bytes of the value were replaced.
func TestBulkTime(t *testing.T) {
	db := NewMem()
	b, err := NewBulk(db, []Spec{{ID: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(b.Add(0, []byte("k"), []byte("1"), nil, 1), b.Add(0, []byte("k"), []byte("2"), nil, 2), b.Finish(nil))
	if err != nil {
		t.Fatal(err)
	}
	r, err := viewOf[string](t, openWith(t, db, Spec{ID: "a"}), "a").Row([]byte("k"))
	if err != nil || r.Value != "2" || r.Time != 2 {
		t.Errorf("%+v %v", r, err)
	}
	if err := b.Add(0, nil, nil, nil, 0); err == nil {
		t.Error("add after finish")
	}
	if err := b.Finish(nil); err == nil {
		t.Error("finish after finish")
	}
}

// A restore that was cut short after a spill is found out; one that started above earlier progress is not harmed.
func TestBulkCutShort(t *testing.T) {
	specs := []Spec{{ID: "a"}}
	db := NewMem()
	b, err := NewBulk(db, specs, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(0, []byte("k"), []byte("1"), nil, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(db, specs, Options{}); !errors.Is(err, ErrPartial) {
		t.Errorf("open: %v", err)
	}
	if _, err := NewBulk(db, specs, 1); !errors.Is(err, ErrPartial) {
		t.Errorf("bulk: %v", err)
	}
	if err := b.Finish([]byte("P")); err != nil {
		t.Fatal(err)
	}
	if b, err = NewBulk(db, specs, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(0, []byte("k"), nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	if s := openWith(t, db, specs...); string(s.Progress()) != "P" {
		t.Errorf("progress %q", s.Progress())
	}
}

// What was loaded leaves the memory.
func TestBulkSpills(t *testing.T) {
	db := &flakyDB{DB: NewMem()}
	b, err := NewBulk(db, []Spec{{ID: "a"}}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 { // of about 70 bytes
		if err := b.Add(0, fmt.Append(nil, n), []byte("0123456789"), nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	if db.loads < 5 || db.loads > 10 {
		t.Errorf("%d loads", db.loads)
	}
}

// Tombstones are written where older rows may lie below, and only there.
func TestBulkTombstones(t *testing.T) {
	db := &countDB{DB: NewMem()}
	b, err := NewBulk(db, []Spec{{ID: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Add(0, []byte("k"), nil, nil, 1), b.Finish(nil)); err != nil || db.deletes != 0 {
		t.Errorf("%d deletes in an empty DB, %v", db.deletes, err)
	}
	if b, err = NewBulk(db, []Spec{{ID: "a"}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Add(0, []byte("k"), nil, nil, 1), b.Finish(nil)); err != nil || db.deletes != 1 {
		t.Errorf("%d deletes, want 1, %v", db.deletes, err)
	}
}

type countDB struct {
	DB
	deletes int
}

func (d *countDB) Load(r Run) error { return d.DB.Load(&countRun{r, d}) }

type countRun struct {
	Run
	d *countDB
}

func (r *countRun) Next() bool {
	ok := r.Run.Next()
	if ok && r.Value() == nil {
		r.d.deletes++
	}
	return ok
}

package store

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

func openWith(t *testing.T, db DB, specs ...Spec) *State {
	t.Helper()
	s, err := Open(db, specs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func viewOf[V any](t *testing.T, s *State, store string) *View[V] {
	t.Helper()
	c, err := codec.For[V]()
	if err != nil {
		t.Fatal(err)
	}
	v, err := ViewOf(s, store, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func put[V any](t *testing.T, v *View[V], key string, val V) {
	t.Helper()
	if err := v.Put([]byte(key), val, 7); err != nil {
		t.Fatal(err)
	}
}

func wantValue[V comparable](t *testing.T, v *View[V], key string, want V, ok bool) {
	t.Helper()
	got, present, err := v.Get([]byte(key))
	if err != nil || present != ok || got != want {
		t.Errorf("%s: %v %v %v, want %v %v", key, got, present, err, want, ok)
	}
}

// commitAll seals, commits and persists.
func commitAll(t *testing.T, s *State, progress string) {
	t.Helper()
	if err := errors.Join(s.Seal(nil), s.Commit([]byte(progress), 1), s.Persist(1, true)); err != nil {
		t.Fatal(err)
	}
}

func scanAll(t *testing.T, db DB) []string {
	t.Helper()
	it, err := db.Scan(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for it.Next() {
		rows = append(rows, hex.EncodeToString(it.Key())+" "+hex.EncodeToString(it.Value()))
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The rows of the DB are a format: they must not change.
func TestRowLayout(t *testing.T) {
	db := NewMem()
	s := openWith(t, db, Spec{ID: "a", KeySchema: "string", ValueSchema: "string", Changelog: true}, Spec{ID: "b"})
	put(t, viewOf[string](t, s, "a"), "key", "value")
	put(t, viewOf[string](t, s, "a"), "", "")
	put(t, viewOf[int64](t, s, "b"), "n", -1)
	commitAll(t, s, "P")
	want := []string{
		"0070726f6772657373 50",
		"0073746f726573 01" + "0102" + "02" +
			"0100" + "01" + "01" + "0161" + "06737472696e67" + "06737472696e67" +
			"0101" + "01" + "00" + "0162" + "00" + "00",
		"0100 0000000000000007",
		"01006b6579 000000000000000776616c7565",
		"01016e 0000000000000007ffffffffffffffff",
	}
	if got := scanAll(t, db); !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

func TestOpenKeepsNumbers(t *testing.T) {
	db := NewMem()
	a, b := Spec{ID: "a", ValueSchema: "int64"}, Spec{ID: "b", ValueSchema: "int64"}
	s := openWith(t, db, a)
	if s.Progress() != nil || !slices.Equal(s.Added(), []string{"a"}) {
		t.Errorf("new: progress %q, added %q", s.Progress(), s.Added())
	}
	put(t, viewOf[int64](t, s, "a"), "k", 1)
	commitAll(t, s, "")
	if s.Progress() == nil || s.Added() != nil {
		t.Errorf("persisted: progress %q, added %q", s.Progress(), s.Added())
	}
	// A store that was added but never persisted is added again.
	for range 2 {
		s = openWith(t, db, b, a)
		if s.Progress() == nil || !slices.Equal(s.Added(), []string{"b"}) {
			t.Errorf("reopened: progress %q, added %q", s.Progress(), s.Added())
		}
	}
	wantValue(t, viewOf[int64](t, s, "a"), "k", 1, true)
	wantValue(t, viewOf[int64](t, s, "b"), "k", 0, false)
	put(t, viewOf[int64](t, s, "b"), "k", 2)
	commitAll(t, s, "2")
	s = openWith(t, db, a)
	wantValue(t, viewOf[int64](t, s, "a"), "k", 1, true)
	if got, err := Stores(db); err != nil || len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("stores: %v %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	db := NewMem()
	s := openWith(t, db, Spec{ID: "a", ValueSchema: "int64"})
	put(t, viewOf[int64](t, s, "a"), "k", 1)
	commitAll(t, s, "1")
	_, err := Open(db, []Spec{{ID: "a", ValueSchema: "string"}}, Options{})
	var schema *SchemaError
	if !errors.As(err, &schema) || schema.Have.ValueSchema != "int64" || schema.Want.ValueSchema != "string" {
		t.Errorf("other schema: %v", err)
	}
	taken, err := Open(db, []Spec{{ID: "a", ValueSchema: "v2", Older: []string{"v1", "int64"}}}, Options{})
	if err != nil {
		t.Fatalf("a schema that the codec reads too: %v", err)
	}
	if list, err := Stores(db); err != nil || list[0].ValueSchema != "int64" {
		t.Errorf("taken over before anything is written: %v %v", list, err)
	}
	put(t, viewOf[int64](t, taken, "a"), "k", 2)
	commitAll(t, taken, "2")
	if list, err := Stores(db); err != nil || list[0].ValueSchema != "v2" {
		t.Errorf("written under the new schema: %v %v", list, err)
	}
	if _, err := Open(db, []Spec{{ID: "a", ValueSchema: "int64"}}, Options{}); !errors.As(err, &schema) || schema.Have.ValueSchema != "v2" {
		t.Errorf("the older schema again: %v", err)
	}
	if _, err := NewBulk(db, []Spec{{ID: "a"}}, 0); !errors.As(err, &schema) {
		t.Errorf("bulk, other schema: %v", err)
	}
	if _, err := Open(db, []Spec{{ID: "x"}, {ID: "x"}}, Options{}); err == nil {
		t.Error("a store that is declared twice was accepted")
	}

	var b Batch
	b.Set([]byte("\x01\x00k"), []byte("v"))
	partial := NewMem()
	if err := partial.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(partial, nil, Options{}); !errors.Is(err, ErrPartial) {
		t.Errorf("rows without progress: %v", err)
	}
	for _, bad := range []string{"", "\x02", "\x01\x01", "\x01\x01\x00\x01\x01\x00\x01\x00\xff", "\x01\x01\x00\x00x"} {
		b.Reset()
		b.Set([]byte(storesKey), []byte(bad))
		b.Set([]byte(progressKey), nil)
		if err := partial.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(partial, nil, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("stores row %q: %v", bad, err)
		}
	}
}

func FuzzParseCatalog(f *testing.F) {
	c := catalog{next: 0x102, stores: []numbered{{Spec{ID: "a", Kind: KeyValue, Changelog: true}, 0x100}}}
	f.Add(c.append(nil))
	f.Add([]byte{catalogVersion, 1, 0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseCatalog(b); err == nil {
			again, err := parseCatalog(c.append(nil))
			if err != nil || len(again.stores) != len(c.stores) || again.next != c.next {
				t.Errorf("%x: %v then %v %v", b, c, again, err)
			}
		}
	})
}

func TestDrop(t *testing.T) {
	db := NewMem()
	specs := []Spec{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	s := openWith(t, db, specs...)
	for _, id := range []string{"a", "b", "c"} {
		put(t, viewOf[int64](t, s, id), "k1", 1)
		put(t, viewOf[int64](t, s, id), "k2", 2)
	}
	commitAll(t, s, "P")
	if err := Drop(db, "c", "a", "unknown"); err != nil {
		t.Fatal(err)
	}
	if rows := scanAll(t, db); len(rows) != 4 {
		t.Errorf("left: %q", rows)
	}
	s = openWith(t, db, Spec{ID: "a", ValueSchema: "string"}, specs[1])
	if string(s.Progress()) != "P" || !slices.Equal(s.Added(), []string{"a"}) {
		t.Errorf("progress %q, added %q", s.Progress(), s.Added())
	}
	if s.numbers[0] == 0x100 || s.numbers[0] == 0x102 {
		t.Errorf("number %#x was used again", s.numbers[0])
	}
	wantValue(t, viewOf[int64](t, s, "b"), "k2", 2, true)
	if err := Drop(NewMem(), "a"); err != nil {
		t.Error(err)
	}
}

package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

// A DB says itself what it holds, and whoever reads a store sees its rows and no others.
func TestReadStores(t *testing.T) {
	db := NewMem()
	if list, err := ReadStores(db); err != nil || len(list) != 0 {
		t.Fatalf("of a new DB: %v, %v", list, err)
	}
	specs := []Spec{
		{ID: "names", KeySchema: "string", ValueSchema: "string", Changelog: true},
		{ID: "passes", Kind: Expiring, KeySchema: "string", ValueSchema: "int64"},
		{ID: "empty", KeySchema: "string", ValueSchema: "string"},
	}
	s := openWith(t, db, specs...)
	names := viewOf[string](t, s, "names")
	for _, k := range []string{"a", "b1", "b2", "\xff"} {
		put(t, names, k, "is "+k)
	}
	passes, err := ExpiringViewOf(s, "passes", codec.Int64())
	if err != nil {
		t.Fatal(err)
	}
	if err := passes.Put([]byte("p"), 5, 1000, 7); err != nil {
		t.Fatal(err)
	}
	commitAll(t, s, "progress")
	list, err := ReadStores(db)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	specs[0].Kind, specs[2].Kind = KeyValue, KeyValue
	var got []string
	for _, st := range list {
		if at := slices.IndexFunc(specs, func(s Spec) bool { return s.ID == st.Spec.ID }); st.Internal != (at < 0) || at >= 0 && !equalSpecs(st.Spec, specs[at]) {
			t.Errorf("%+v", st)
		}
		for _, prefix := range []string{"", "b", "\xff", "none"} {
			it, err := st.Scan(db, []byte(prefix))
			if err != nil {
				t.Fatal(err)
			}
			for it.Next() {
				if !st.Internal {
					got = append(got, fmt.Sprintf("%s %q: %q %d", st.Spec.ID, prefix, it.Key(), len(it.Value())))
				}
			}
			if err := errors.Join(it.Err(), it.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		`names "": "a" 12`, `names "": "b1" 13`, `names "": "b2" 13`, `names "": "\xff" 12`,
		`names "b": "b1" 13`, `names "b": "b2" 13`, `names "\xff": "\xff" 12`, `passes "": "p" 24`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%q\nwant\n%q", got, want)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := list[0].Scan(db, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func equalSpecs(a, b Spec) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.KeySchema == b.KeySchema && a.ValueSchema == b.ValueSchema && a.Changelog == b.Changelog
}

func TestReadStoresDamaged(t *testing.T) {
	db := NewMem()
	var b Batch
	b.Set([]byte(storesKey), []byte{catalogVersion + 1})
	if err := db.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStores(db); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

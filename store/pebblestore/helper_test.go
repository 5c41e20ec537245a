package pebblestore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark/tidemark/store"
)

const dir = "/state/app/task"

func mustOpen(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustClose(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// rowRun is a store.Run of rows with one value.
type rowRun struct {
	n, at int
	value string
}

func rows(n int, value string) *rowRun { return &rowRun{n: n, value: value} }

func (r *rowRun) Next() bool {
	r.at++
	return r.at <= r.n
}
func (r *rowRun) Key() []byte   { return fmt.Appendf(nil, "key%05d", r.at-1) }
func (r *rowRun) Value() []byte { return []byte(r.value) }
func (r *rowRun) End() []byte   { return nil }

func load(t testing.TB, db *DB, r store.Run) {
	t.Helper()
	if err := db.Load(r); err != nil {
		t.Fatal(err)
	}
}

func applyErr(db *DB, pairs ...string) error {
	var b store.Batch
	for i := 0; i < len(pairs); i += 2 {
		b.Set([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	return db.Apply(&b)
}

func apply(t testing.TB, db *DB, pairs ...string) {
	t.Helper()
	if err := applyErr(db, pairs...); err != nil {
		t.Fatal(err)
	}
}

func wantRow(t testing.TB, db *DB, key, want string) {
	t.Helper()
	got, ok, err := db.Get(nil, []byte(key))
	if err != nil || ok != (want != "") || string(got) != want {
		t.Errorf("%s: %q %v %v, want %q", key, got, ok, err, want)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

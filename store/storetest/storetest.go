// Package storetest is the conformance suite of store.DB: every implementation runs it in its tests.
//
// Its random tests print their seeds as names of subtests; a single one can be run again with -run.
package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/store"
)

// Disk is where the databases of one test live. At most one is open at a time.
type Disk struct {
	// Open opens the database on the disk.
	Open func() (store.DB, error)
	// Crash replaces the content of the disk by what it may be after a loss of power at this moment. The open database is
	// closed afterwards and must not change the new content. Nil if the implementation keeps nothing.
	Crash func(rng *rand.Rand) error
}

// Run runs the suite. disk makes an empty disk.
func Run(t *testing.T, disk func(t *testing.T) Disk) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Disk)
	}{
		{"AEmptyKey", testEmptyKey},
		{"Get", testGet},
		{"Batch", testBatch},
		{"Load", testLoad},
		{"Scan", testScan},
		{"ScanSnapshot", testScanSnapshot},
		{"DSingleDelete", testSingleDelete},
		{"DRangeDel", testRangeDel},
		{"Closed", testClosed},
		{"ReadDuringWrite", testReadDuringWrite},
		{"DBigBatch", testBigBatch},
		{"Reopen", testReopen},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, disk(t)) })
	}
	for n := range 8 {
		seed := uint64(n + 1)
		if n >= 4 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("Random/seed=%d", seed), func(t *testing.T) { testRandom(t, disk(t), seed) })
	}
}

func open(t *testing.T, d Disk) store.DB {
	t.Helper()
	db, err := d.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A value of "-" in a list of pairs deletes, one of rangeTo and an end deletes the range from key to end.
const rangeTo = "-to:"

// apply applies pairs of keys and values in one batch.
func apply(t *testing.T, db store.DB, pairs ...string) {
	t.Helper()
	var b store.Batch
	for i := 0; i < len(pairs); i += 2 {
		if end, ok := strings.CutPrefix(pairs[i+1], rangeTo); ok {
			b.DeleteRange([]byte(pairs[i]), []byte(end))
		} else if pairs[i+1] == "-" {
			b.Delete([]byte(pairs[i]))
		} else {
			b.Set([]byte(pairs[i]), []byte(pairs[i+1]))
		}
	}
	check(t, db.Apply(&b))
}

// run is a store.Run over pairs as in apply. It scribbles over the slices it has handed out.
type run struct {
	pairs           []string
	key, value, end []byte
}

func (r *run) Next() bool {
	for i := range r.key {
		r.key[i] = '#'
	}
	for i := range r.value {
		r.value[i] = '#'
	}
	for i := range r.end {
		r.end[i] = '#'
	}
	if len(r.pairs) == 0 {
		return false
	}
	r.key = append(r.key[:0], r.pairs[0]...)
	r.value, r.end = nil, nil
	if end, ok := strings.CutPrefix(r.pairs[1], rangeTo); ok {
		r.end = []byte(end)
	} else if r.pairs[1] != "-" {
		r.value = append([]byte{}, r.pairs[1]...)
	}
	r.pairs = r.pairs[2:]
	return true
}

func (r *run) Key() []byte   { return r.key }
func (r *run) Value() []byte { return r.value }
func (r *run) End() []byte   { return r.end }

// want compares a scan with pairs.
func want(t *testing.T, db store.DB, lo, hi []byte, pairs ...string) {
	t.Helper()
	it, err := db.Scan(lo, hi)
	check(t, err)
	compare(t, it, pairs...)
}

func compare(t *testing.T, it store.Iterator, pairs ...string) {
	t.Helper()
	var got []string
	for it.Next() {
		got = append(got, string(it.Key()), string(it.Value()))
	}
	check(t, it.Err())
	check(t, it.Close())
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", pairs) {
		t.Errorf("scan shows %.300q, want %.300q", got, pairs)
	}
}

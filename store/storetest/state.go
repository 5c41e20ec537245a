package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// RunState drives a store.State above the database with random writes, commits, rollbacks, writes of frozen layers on
// another goroutine, and crashes. After a crash the content must be exactly that of the commit its progress names.
func RunState(t *testing.T, disk func(t *testing.T) Disk) {
	for n := range 6 {
		seed := uint64(n + 1)
		if n >= 3 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("State/seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			w := &worker{t: t, rng: rng, disk: disk(t), history: []map[string]string{{}}, keys: 5 + rng.IntN(2000)}
			w.open()
			for range 250 {
				w.step()
			}
			w.finish()
			if err := w.s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// worker is the goroutine of a task.
type worker struct {
	t       *testing.T
	rng     *rand.Rand
	disk    Disk
	db      store.DB
	s       *store.State
	v       *store.View[string]
	keys    int
	now     int64
	history []map[string]string // content after each commit
	cur     map[string]string
	sealed  map[string]string // nil: nothing is sealed
	written chan error        // of the frozen layer; nil: nothing is frozen
}

func (w *worker) open() {
	var err error
	if w.db, err = w.disk.Open(); err != nil {
		w.t.Fatal(err)
	}
	w.s, err = store.Open(w.db, []store.Spec{{ID: "s", KeySchema: "string", ValueSchema: "string", Changelog: true}},
		store.Options{ViewBytes: 20_000, LayerBytes: 100_000, LayerRecords: 4000, LayerAge: time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.v, err = store.ViewOf(w.s, "s", codec.String()); err != nil {
		w.t.Fatal(err)
	}
	n := 0
	if p := w.s.Progress(); p != nil {
		n, _ = strconv.Atoi(string(p))
	}
	w.history = w.history[:n+1]
	w.cur = maps.Clone(w.history[n])
	w.sealed, w.written = nil, nil
	w.compare()
}

func (w *worker) step() {
	w.now += w.rng.Int64N(3000)
	switch op := w.rng.IntN(100); {
	case op < 50:
		w.write(1 + w.rng.IntN(20))
	case op < 55:
		w.write(w.rng.IntN(w.keys))
	case op < 70:
		if w.sealed == nil {
			check(w.t, w.s.Seal(nil))
			w.sealed = maps.Clone(w.cur)
		}
	case op < 85:
		if w.sealed != nil {
			check(w.t, w.s.Commit([]byte(strconv.Itoa(len(w.history))), w.now))
			w.history = append(w.history, w.sealed)
			w.sealed = nil
		}
	case op < 88:
		w.s.Rollback()
		w.cur, w.sealed = maps.Clone(w.history[len(w.history)-1]), nil
	case op < 92:
		if f := w.s.Freeze(w.now, w.rng.IntN(2) == 0); f != nil {
			written := make(chan error, 1)
			go func() { written <- f.Write() }()
			w.written = written
		}
	case op < 95:
		w.finish()
	case op < 98:
		w.compare()
	case w.disk.Crash != nil:
		w.crash()
	}
}

func (w *worker) write(n int) {
	for range n {
		k := fmt.Sprintf("key-%05d", w.rng.IntN(w.keys))
		r, err := w.v.Row([]byte(k))
		check(w.t, err)
		if want, ok := w.cur[k]; ok != r.Present || r.Value != want {
			w.t.Fatalf("%s: %q %v, want %q %v", k, r.Value, r.Present, want, ok)
		}
		if w.rng.IntN(4) == 0 {
			w.v.Remove(r, w.now)
			delete(w.cur, k)
		} else {
			v := strconv.Itoa(w.rng.IntN(1e6))
			w.v.Set(r, v, w.now)
			w.cur[k] = v
		}
	}
}

func (w *worker) finish() {
	if w.written != nil {
		check(w.t, <-w.written)
		check(w.t, w.s.Finish())
		w.written = nil
	}
}

func (w *worker) compare() {
	w.t.Helper()
	c, err := w.v.Scan(nil, nil)
	check(w.t, err)
	keys := slices.Sorted(maps.Keys(w.cur))
	n := 0
	for c.Next() {
		v, err := c.Value()
		check(w.t, err)
		if n == len(keys) || keys[n] != string(c.Key()) || w.cur[keys[n]] != v {
			w.t.Fatalf("scan: row %d of %d is %q %q", n, len(keys), c.Key(), v)
		}
		n++
	}
	check(w.t, c.Close())
	if n != len(keys) {
		w.t.Fatalf("scan: %d rows, want %d", n, len(keys))
	}
}

// crash loses the memory and what the disk may lose, in the middle of the write of a frozen layer if there is one.
func (w *worker) crash() {
	check(w.t, w.disk.Crash(w.rng))
	if w.written != nil {
		<-w.written
	}
	check(w.t, w.db.Close())
	w.open()
}

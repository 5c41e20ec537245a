package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tidemark/tidemark/store"
)

// twin is a database beside a map with the same content.
type twin struct {
	t       *testing.T
	rng     *rand.Rand
	db      *DB
	model   map[string]string
	history []map[string]string // content after every write since durable; [0] is that of the last flush
}

func newTwin(t *testing.T, db *DB, rng *rand.Rand, model map[string]string) *twin {
	return &twin{t: t, rng: rng, db: db, model: model, history: []map[string]string{model}}
}

func (w *twin) key() string { return fmt.Sprintf("k%04d", w.rng.IntN(2000)) }

func (w *twin) value() string {
	b := make([]byte, w.rng.IntN(200))
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return string(b)
}

// ops draws sets, deletes and range deletes on a model, in ascending order for a run.
func (w *twin) ops(n int, sorted bool) (ops [][3]string) {
	keys := map[string]bool{}
	for range n {
		keys[w.key()] = true
	}
	order := slices.Sorted(maps.Keys(keys))
	if !sorted {
		w.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	last := ""
	for _, k := range order {
		if sorted && k < last {
			continue
		}
		switch roll := w.rng.IntN(20); {
		case roll == 0:
			last = k[:4] + "~"
			if w.rng.IntN(20) == 0 {
				last = k[:2+w.rng.IntN(3)] + "~"
			}
			ops = append(ops, [3]string{"range", k, last})
		case roll < 5:
			ops = append(ops, [3]string{"delete", k})
		default:
			ops = append(ops, [3]string{"set", k, w.value()})
		}
	}
	return ops
}

func (w *twin) note(ops [][3]string) {
	next := maps.Clone(w.model)
	for _, op := range ops {
		switch op[0] {
		case "set":
			next[op[1]] = op[2]
		case "delete":
			delete(next, op[1])
		default:
			maps.DeleteFunc(next, func(k, _ string) bool { return k >= op[1] && k < op[2] })
		}
	}
	w.model = next
	w.history = append(w.history, next)
}

// opRun is a store.Run of ops.
type opRun struct {
	ops [][3]string
	at  int
}

func (r *opRun) Next() bool  { r.at++; return r.at <= len(r.ops) }
func (r *opRun) Key() []byte { return []byte(r.ops[r.at-1][1]) }
func (r *opRun) Value() []byte {
	if op := r.ops[r.at-1]; op[0] == "set" {
		return []byte(op[2])
	}
	return nil
}
func (r *opRun) End() []byte {
	if op := r.ops[r.at-1]; op[0] == "range" {
		return []byte(op[2])
	}
	return nil
}

func (w *twin) step() { w.roll(20) }

// write is a step that reads nothing.
func (w *twin) write() { w.roll(8) }

func (w *twin) roll(sides int) {
	w.t.Helper()
	var err error
	switch roll := w.rng.IntN(sides); {
	case roll < 8:
		ops := w.ops(1+w.rng.IntN(10), false)
		var b store.Batch
		for _, op := range ops {
			switch op[0] {
			case "set":
				b.Set([]byte(op[1]), []byte(op[2]))
			case "delete":
				b.Delete([]byte(op[1]))
			default:
				b.DeleteRange([]byte(op[1]), []byte(op[2]))
			}
		}
		err = w.db.Apply(&b)
		w.note(ops)
	case roll < 12:
		ops := w.ops(1+w.rng.IntN(100), true)
		w.note(ops)
		w.history = w.history[len(w.history)-2:] // the run is in doubt until Load returns, what was before is not
		err = w.db.Load(&opRun{ops: ops})
		w.history = w.history[1:]
	case roll < 14:
		err = w.db.Flush()
		w.history = w.history[len(w.history)-1:]
	case roll < 15:
		lo, hi := w.key(), w.key()
		if lo < hi {
			err = w.db.pebble.Compact(context.Background(), []byte(lo), []byte(hi), false)
		}
	default:
		w.verify()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// verify compares a read and a scan.
func (w *twin) verify() {
	w.t.Helper()
	k := w.key()
	v, ok, err := w.db.Get(nil, []byte(k))
	if want, present := w.model[k]; err != nil || ok != present || string(v) != want {
		w.t.Fatalf("get %s: %q %v %v, want %q %v", k, v, ok, err, want, present)
	}
	lo, hi := w.key(), w.key()
	it, err := w.db.Scan([]byte(lo), []byte(hi))
	if err != nil {
		w.t.Fatal(err)
	}
	var want []string
	for k := range w.model {
		if k >= lo && k < hi {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	n := 0
	for it.Next() {
		if n >= len(want) || string(it.Key()) != want[n] || !bytes.Equal(it.Value(), []byte(w.model[want[n]])) {
			w.t.Fatalf("scan from %s to %s: row %d is %q", lo, hi, n, it.Key())
		}
		n++
	}
	if err := it.Err(); err != nil || n != len(want) {
		w.t.Fatalf("scan from %s to %s: %d rows, want %d: %v", lo, hi, n, len(want), err)
	}
	if err := it.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *twin) rows() []string { return modelRows(w.model) }

func modelRows(model map[string]string) []string {
	var rows []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		rows = append(rows, k+"="+model[k])
	}
	return rows
}

// randomOrigin makes a database by random writes, and its snapshot.
func randomOrigin(t *testing.T, fs *FS, rng *rand.Rand) (*cloud, map[string]string) {
	t.Helper()
	db := mustOpen(t, "/origin", Options{FS: fs})
	defer mustClose(t, db)
	w := newTwin(t, db, rng, map[string]string{})
	for range 1 + rng.IntN(4) {
		ops := w.ops(1500, true)
		w.note(ops)
		if err := db.Load(&opRun{ops: ops}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 + rng.IntN(60) {
		w.step()
	}
	if rng.IntN(3) > 0 { // else much of it is compacted away soon
		if err := db.pebble.Compact(context.Background(), []byte("a"), []byte("z"), false); err != nil {
			t.Fatal(err)
		}
	}
	c := upload(t, db, "/origin"+CheckpointSuffix)
	c.chunk = 512 << rng.IntN(5)
	return c, w.model
}

// mustReopen opens a directory that may be complete or not.
func mustReopen(t *testing.T, fs *FS, l Lazy) *DB {
	t.Helper()
	_, lazy, err := LazyIdentity(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	if lazy {
		return mustOpenLazy(t, dir, Options{FS: fs}, l)
	}
	db := mustOpen(t, dir, Options{FS: fs})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func seeds() []uint64 { return []uint64{1, 2, rand.Uint64(), rand.Uint64()} }

// Whatever the way to the remote store does, and whatever is written and compacted meanwhile, every read gives what the
// original would, before, during and after.
func TestLazyTwin(t *testing.T) {
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				fs := NewMemFS()
				c, model := randomOrigin(t, fs, rng)
				c.rng = rand.New(rand.NewPCG(seed, 8))
				l := c.lazy()
				l.Parallel = 1 + rng.IntN(4)
				if rng.IntN(2) == 0 {
					l.BytesPerSecond = 5000 + rng.Int64N(50_000)
				}
				told := hydrated(&l)
				db := mustOpenLazy(t, dir, Options{FS: fs}, l)
				w := newTwin(t, db, rng, model)
				for range 150 {
					w.step()
					if rng.IntN(40) > 0 {
						continue
					}
					if err := db.Flush(); err != nil {
						t.Fatal(err)
					}
					mustClose(t, db)
					db = mustReopen(t, fs, l)
					w.db = db
				}
				if db.lazy != nil {
					if err := <-told; err != nil {
						t.Fatal(err)
					}
				}
				wantRows(t, "hydrated", all(t, db), w.rows())
				if err := db.Flush(); err != nil {
					t.Fatal(err)
				}
				mustClose(t, db)
				db = mustOpen(t, dir, Options{FS: fs})
				wantRows(t, "reopened", all(t, db), w.rows())
				mustClose(t, db)
			})
		})
	}
}

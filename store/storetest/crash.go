package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/store"
)

// writer writes to a DB and remembers the content after every write.
type writer struct {
	t       *testing.T
	rng     *rand.Rand
	db      store.DB
	history []map[string]string // [0] is the content at the start
	durable int                 // index of the oldest content a crash may leave
}

func newWriter(t *testing.T, db store.DB, rng *rand.Rand) *writer {
	return &writer{t: t, rng: rng, db: db, history: []map[string]string{{}}}
}

func (w *writer) now() map[string]string { return w.history[len(w.history)-1] }

// rangePairs draws range deletes between other operations: ascending and apart for a run.
func (w *writer) rangePairs(pairs []string, sorted bool) []string {
	var out []string
	end := ""
	for i := 0; i < len(pairs); i += 2 {
		k := pairs[i]
		if sorted && k < end {
			continue
		}
		if w.rng.IntN(6) == 0 {
			end = k + string(rune('0'+w.rng.IntN(10)))
			if w.rng.IntN(3) == 0 {
				end = string(rune(k[0] + 1))
			}
			out = append(out, k, rangeTo+end)
			continue
		}
		out = append(out, k, pairs[i+1])
	}
	return out
}

// pairs draws operations; sorted makes a run of them.
func (w *writer) pairs(n int, sorted bool) []string {
	ops := map[string]string{}
	var order []string
	for range n {
		k := fmt.Sprintf("%c%d", 'a'+w.rng.IntN(4), w.rng.IntN(40))
		if _, again := ops[k]; again {
			continue
		}
		order = append(order, k)
		ops[k] = "-"
		if w.rng.IntN(3) > 0 {
			ops[k] = fmt.Sprint(w.rng.IntN(1000)) + strings.Repeat("x", w.rng.IntN(40))
		}
	}
	if sorted {
		slices.Sort(order)
	}
	var pairs []string
	for _, k := range order {
		pairs = append(pairs, k, ops[k])
	}
	return pairs
}

func (w *writer) step() {
	switch op := w.rng.IntN(10); {
	case op < 6:
		pairs := w.rangePairs(w.pairs(1+w.rng.IntN(6), false), false)
		apply(w.t, w.db, pairs...)
		w.note(pairs)
	case op < 8:
		pairs := w.rangePairs(w.pairs(1+w.rng.IntN(30), true), true)
		check(w.t, w.db.Load(&run{pairs: pairs}))
		w.note(pairs)
		w.durable = len(w.history) - 1
	default:
		check(w.t, w.db.Flush())
		w.durable = len(w.history) - 1
	}
}

func (w *writer) note(pairs []string) {
	next := maps.Clone(w.now())
	for i := 0; i < len(pairs); i += 2 {
		if end, ok := strings.CutPrefix(pairs[i+1], rangeTo); ok {
			maps.DeleteFunc(next, func(k, _ string) bool { return k >= pairs[i] && k < end })
		} else if pairs[i+1] == "-" {
			delete(next, pairs[i])
		} else {
			next[pairs[i]] = pairs[i+1]
		}
	}
	w.history = append(w.history, next)
}

func content(t *testing.T, db store.DB, lo, hi []byte) map[string]string {
	t.Helper()
	it, err := db.Scan(lo, hi)
	check(t, err)
	got := map[string]string{}
	var last []byte
	for it.Next() {
		if len(got) > 0 && bytes.Compare(last, it.Key()) >= 0 {
			t.Fatalf("scan shows %q after %q", it.Key(), last)
		}
		last = append(last[:0], it.Key()...)
		got[string(it.Key())] = string(it.Value())
	}
	check(t, it.Err())
	check(t, it.Close())
	return got
}

// verify compares scans and reads with the model.
func (w *writer) verify() {
	w.t.Helper()
	lo, hi := []byte(w.pairs(1, false)[0]), []byte(w.pairs(1, false)[0])
	model := maps.Clone(w.now())
	maps.DeleteFunc(model, func(k, _ string) bool { return k < string(lo) || k >= string(hi) })
	if got := content(w.t, w.db, lo, hi); !maps.Equal(got, model) {
		w.t.Fatalf("scan from %q to %q: %.300q, want %.300q", lo, hi, got, model)
	}
	k := w.pairs(1, false)[0]
	v, ok, err := w.db.Get(nil, []byte(k))
	if want, present := w.now()[k]; err != nil || ok != present || string(v) != want {
		w.t.Fatalf("get %q: %q %v %v, want %q %v", k, v, ok, err, want, present)
	}
}

// testRandom runs random operations against a map. After a crash the content must be that of a moment since the last
// flush or load.
func testRandom(t *testing.T, d Disk, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	db := open(t, d)
	w := newWriter(t, db, rng)
	for n := range 300 {
		w.step()
		w.verify()
		if d.Crash == nil || n%25 != 24 {
			continue
		}
		check(t, d.Crash(rng))
		check(t, w.db.Close())
		w.db = open(t, d)
		got := content(t, w.db, nil, nil)
		at := slices.IndexFunc(w.history[w.durable:], func(m map[string]string) bool { return maps.Equal(m, got) })
		if at < 0 {
			t.Fatalf("after the crash: %.300q, which was at no moment since write %d of %d", got, w.durable, len(w.history)-1)
		}
		w.history, w.durable = []map[string]string{got}, 0
	}
	if got := content(t, w.db, nil, nil); !maps.Equal(got, w.now()) {
		t.Errorf("at the end: %.300q, want %.300q", got, w.now())
	}
}

// testReopen closes and opens: what was flushed or loaded is there.
func testReopen(t *testing.T, d Disk) {
	if d.Crash == nil {
		return
	}
	db := open(t, d)
	apply(t, db, "a", "1")
	check(t, db.Flush())
	check(t, db.Load(&run{pairs: []string{"b", "2"}}))
	check(t, db.Close())
	want(t, open(t, d), nil, nil, "a", "1", "b", "2")
}

// D-BIG-BATCH: a batch larger than the write buffer is there wholly or not at all, and what came before it with it.
func testBigBatch(t *testing.T, d Disk) {
	rng := rand.New(rand.NewPCG(7, 7))
	big := make([]string, 0, 400)
	for i := range 200 {
		big = append(big, fmt.Sprintf("big%03d", i), string(bytes.Repeat([]byte{byte(i)}, 100<<10)))
	}
	db := open(t, d)
	apply(t, db, "first", "1")
	apply(t, db, big...)
	apply(t, db, "second", "2")
	if n := len(content(t, db, nil, nil)); n != 202 {
		t.Fatalf("%d rows, want 202", n)
	}
	if d.Crash == nil {
		return
	}
	for range 3 { // the later ones crash while opening
		check(t, d.Crash(rng))
		check(t, db.Close())
		db = open(t, d)
		got := content(t, db, nil, nil)
		_, first := got["first"]
		_, second := got["second"]
		rows := len(got)
		if first {
			rows--
		}
		if second {
			rows--
		}
		if rows != 0 && rows != 200 || rows == 200 && !first || second && rows == 0 {
			t.Fatalf("%d of 200 rows, first %v, second %v", rows, first, second)
		}
	}
}

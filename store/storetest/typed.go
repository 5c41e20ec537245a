package storetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark/tidemark/store"
)

// part is one store of a kind and its naive twin.
type part interface {
	spec() store.Spec
	// open takes the view from a State that has just been opened.
	open(t *testing.T, s *store.State)
	// step does something to view and twin, or compares an answer.
	step(rng *rand.Rand)
	// compare compares everything.
	compare()
	// model returns a copy of the twin, set replaces it.
	model() any
	set(model any)
	// rolledBack is told that the State was rolled back, or opened anew; restored that it was filled from a changelog.
	rolledBack()
	restored()
}

// RunTyped drives the views of all kinds above one database with random operations, commits, rollbacks, writes of frozen
// layers, crashes, replays of the changelog above what a crash has left, and restores from the changelog alone.
func RunTyped(t *testing.T, disk func(t *testing.T) Disk) {
	for n := range 10 {
		seed := uint64(n + 1)
		if n >= 5 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("Typed/seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			w := &typedWorker{t: t, rng: rng, disk: disk(t), parts: []part{
				newWindowPart(rng), newSessionPart(rng), newTimerPart(rng), newDedupPart(), newVersionedPart(rng), newListPart(), newExpiringPart(),
			}}
			w.history = []commit{{models: w.models()}}
			w.open()
			for range 1500 {
				w.step()
			}
			w.finish()
			check(t, w.s.Close())
		})
	}
}

// commit is the state after a commit and the changes that led to it.
type commit struct {
	models  []any
	changes []store.Change
}

type typedWorker struct {
	t       *testing.T
	rng     *rand.Rand
	disk    Disk
	parts   []part
	db      store.DB
	s       *store.State
	now     int64
	history []commit
	sealed  *commit
	written chan error
	bulk    int // the commit the last replay has led to: floors are not kept with that
}

func (w *typedWorker) models() (out []any) {
	for _, p := range w.parts {
		out = append(out, p.model())
	}
	return out
}

func (w *typedWorker) set(models []any) {
	for i, p := range w.parts {
		p.set(models[i])
		// The twin goes on with a copy.
		p.set(p.model())
	}
}

func (w *typedWorker) specs() (out []store.Spec) {
	for _, p := range w.parts {
		out = append(out, p.spec())
	}
	return out
}

func (w *typedWorker) state(db store.DB) *store.State {
	s, err := store.Open(db, w.specs(), store.Options{ViewBytes: 1 + w.rng.Int64N(20_000), LayerBytes: 50_000, LayerRecords: 2000, LayerAge: time.Minute})
	check(w.t, err)
	for _, p := range w.parts {
		p.open(w.t, s)
	}
	return s
}

func (w *typedWorker) open() {
	var err error
	w.db, err = w.disk.Open()
	check(w.t, err)
	n := 0
	p, err := store.ReadProgress(w.db)
	check(w.t, err)
	if p != nil {
		n, _ = strconv.Atoi(string(p))
	}
	if len(w.history) > n+1 && w.rng.IntN(2) == 0 {
		w.replay(w.db, n+1, len(w.history)-1)
		n = len(w.history) - 1
		w.bulk = n
	}
	w.history = w.history[:n+1]
	w.set(w.history[n].models)
	w.sealed, w.written = nil, nil
	w.s = w.state(w.db)
	for _, p := range w.parts {
		p.rolledBack()
		if n == w.bulk {
			p.restored()
		}
		p.compare()
	}
}

// replay adds the changes of some commits to a database. Some of those that a later one replaces are left out, as
// compaction does, where that is allowed.
func (w *typedWorker) replay(db store.DB, from, to int) {
	b, err := store.NewBulk(db, w.specs(), 1+w.rng.Int64N(20_000))
	check(w.t, err)
	for n := from; n <= to; n++ {
		for _, c := range w.history[n].changes {
			check(w.t, b.Add(c.Store, c.Key, c.Value, c.Header, c.Time))
		}
	}
	check(w.t, b.Finish([]byte(strconv.Itoa(to))))
}

func (w *typedWorker) step() {
	w.now += w.rng.Int64N(100)
	switch op := w.rng.IntN(200); {
	case op < 160:
		w.parts[w.rng.IntN(len(w.parts))].step(w.rng)
	case op < 172:
		if w.sealed == nil {
			c := &commit{models: w.models()}
			check(w.t, w.s.Seal(func(ch store.Change) error {
				c.changes = append(c.changes, ch)
				return nil
			}))
			w.sealed = c
		}
	case op < 182:
		if w.sealed != nil {
			check(w.t, w.s.Commit([]byte(strconv.Itoa(len(w.history))), w.now))
			w.history = append(w.history, *w.sealed)
			w.sealed = nil
		}
	case op < 186:
		w.s.Rollback()
		w.set(w.history[len(w.history)-1].models)
		w.sealed = nil
		for _, p := range w.parts {
			p.rolledBack()
			if len(w.history)-1 == w.bulk {
				p.restored()
			}
		}
	case op < 190:
		if f := w.s.Freeze(w.now, w.rng.IntN(2) == 0); f != nil {
			written := make(chan error, 1)
			go func() { written <- f.Write() }()
			w.written = written
		}
	case op < 193:
		w.finish()
	case op < 197:
		for _, p := range w.parts {
			p.compare()
		}
	case op < 199:
		if w.disk.Crash != nil {
			w.crash()
		}
	default:
		w.restore()
	}
}

func (w *typedWorker) finish() {
	if w.written != nil {
		check(w.t, <-w.written)
		check(w.t, w.s.Finish())
		w.written = nil
	}
}

func (w *typedWorker) crash() {
	check(w.t, w.disk.Crash(w.rng))
	if w.written != nil {
		<-w.written
	}
	check(w.t, w.db.Close())
	w.open()
}

// restore fills another database from the changelog alone and compares it with the last commit.
func (w *typedWorker) restore() {
	now := w.models()
	db := store.NewMem()
	w.replay(db, 1, len(w.history)-1)
	w.set(w.history[len(w.history)-1].models)
	s := w.state(db)
	for _, p := range w.parts {
		p.rolledBack()
		p.restored()
		p.compare()
	}
	check(w.t, s.Close())
	w.set(now)
	for _, p := range w.parts {
		p.open(w.t, w.s)
		p.rolledBack()
	}
}

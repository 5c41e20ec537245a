package pebblestore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A loss of power at any moment leaves a directory that opens, with the content of a moment since the last flush, and goes
// on to hydrate. What was saved is not fetched again.
func TestLazyCrash(t *testing.T) {
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testLazyCrash(t, seed) })
		})
	}
}

func testLazyCrash(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	fs := NewMemFS()
	c, model := randomOrigin(t, fs, rng)
	c.latency = 20 * time.Millisecond
	fs = NewMemFS()
	l := c.lazy()
	var size int64
	for _, b := range c.objects {
		size += int64(len(b))
	}
	l.BytesPerSecond = size / int64(5+rng.IntN(20))
	db := mustOpenLazy(t, dir, Options{FS: fs}, l)
	w := newTwin(t, db, rng, model)
	partial := 0
	for range 15 {
		for range rng.IntN(8) {
			if rng.IntN(20) == 0 {
				w.step()
			} else {
				w.write()
			}
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
			if db.lazy != nil && !db.lazy.complete.Load() && rng.IntN(3) == 0 {
				if err := db.lazy.save(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if rng.IntN(4) == 0 {
			mustClose(t, db) // and lose power right behind
		}
		crashed, err := fs.CrashClone(rng.IntN(101), rng)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, db)
		fs = crashed
		// Comparing everything fetches everything, so it is done in a copy.
		copied, err := fs.CrashClone(100, rng)
		if err != nil {
			t.Fatal(err)
		}
		db = mustReopen(t, copied, l)
		got := all(t, db)
		mustClose(t, db)
		db = mustReopen(t, fs, l)
		if have, total := db.Hydration(); have > 0 && have < total {
			partial++
		}
		at := slices.IndexFunc(w.history, func(m map[string]string) bool { return slices.Equal(modelRows(m), got) })
		if at < 0 {
			t.Fatalf("%d rows, which were there at no moment since the last flush", len(got))
		}
		w = newTwin(t, db, rng, maps.Clone(w.history[at]))
	}
	t.Logf("opened %d times with a part of %d bytes", partial, size)
	for db.lazy != nil && !db.lazy.complete.Load() {
		time.Sleep(time.Second)
	}
	wantRows(t, "hydrated", all(t, db), w.rows())
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	fs, err := fs.CrashClone(0, rng)
	if err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir, Options{FS: fs})
	wantRows(t, "reopened", all(t, db), w.rows())
	mustClose(t, db)
}

// A loss of power while OpenLazy makes the directory leaves none, or a whole one.
func TestLazyCrashAtTheStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	origin := NewMemFS()
	c, want := sample(t, origin)
	for after := 0; ; after += 1 + rng.IntN(3) {
		base := NewMemFS()
		n := 0
		var crashed *FS
		fs := base.Inject(func(op Op) error {
			if op.Write && crashed == nil {
				if n++; n > after {
					var err error
					if crashed, err = base.CrashClone(rng.IntN(101), rng); err != nil {
						t.Error(err)
					}
				}
			}
			return nil
		})
		// The background would work beside the count.
		l := c.lazy()
		if err := l.setDefaults(); err != nil {
			t.Fatal(err)
		}
		if err := l.prepare(fs, dir); err != nil {
			t.Fatal(err)
		}
		if crashed == nil {
			if after < 10 {
				t.Errorf("%d operations make a directory", after)
			}
			return
		}
		db := mustOpenLazy(t, dir, Options{FS: crashed}, c.lazy())
		wantRows(t, fmt.Sprint("after ", after), all(t, db), want)
		mustClose(t, db)
	}
}

// A loss of power at any operation while the last files come and the directory becomes an ordinary one.
func TestLazyCrashAtTheEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	origin := NewMemFS()
	c, want := sample(t, origin)
	c.chunk = 64 << 10
	for after := 0; ; after += 1 + rng.IntN(3) {
		crashed := crashWhileHydrating(t, c, after, rng)
		if crashed == nil {
			if after < 20 {
				t.Errorf("%d operations", after)
			}
			return
		}
		synctest.Test(t, func(t *testing.T) {
			db := mustReopen(t, crashed, c.lazy())
			wantRows(t, fmt.Sprint("after ", after), all(t, db), want)
			mustClose(t, db)
		})
	}
}

// crashWhileHydrating loses power at the n-th write of the background; nil if there are less.
func crashWhileHydrating(t *testing.T, c *cloud, n int, rng *rand.Rand) (crashed *FS) {
	synctest.Test(t, func(t *testing.T) {
		base := NewMemFS()
		var mu sync.Mutex
		writes := 0
		l := c.lazy()
		told := hydrated(&l)
		percent := []int{0, 0, rng.IntN(101)}[rng.IntN(3)]
		db := mustOpenLazy(t, dir, Options{FS: base.Inject(func(op Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !op.Write || !strings.HasPrefix(op.Path, dir+"/"+ownPrefix) && op.Path != dir || crashed != nil {
				return nil
			}
			if writes++; writes > n {
				var err error
				if crashed, err = base.CrashClone(percent, rng); err != nil {
					t.Error(err)
				}
			}
			return nil
		})}, l)
		if err := <-told; err != nil {
			t.Error(err)
		}
		mustClose(t, db)
	})
	return crashed
}

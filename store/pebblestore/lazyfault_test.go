package pebblestore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/store"
)

// damage opens a database with one damaged object, reads rows for as long as that goes well, and returns how many were
// read. In the end it is unusable, both callbacks have said so, and nothing was wrong before.
func damage(t *testing.T, c *cloud, want []string, l Lazy) (good int) {
	t.Helper()
	fs := NewMemFS()
	told := hydrated(&l)
	var fatal atomic.Int64
	db, err := OpenLazy(dir, Options{FS: fs, OnFatal: func(err error) {
		wantErr(t, "OnFatal", err, store.ErrCorrupt)
		fatal.Add(1)
	}}, l)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for err == nil {
		var v []byte
		row := want[rng.IntN(len(want))]
		key, value, _ := strings.Cut(row, "=")
		if v, _, err = db.Get(nil, []byte(key)); err == nil && string(v) != value {
			t.Fatalf("%s is wrong", key)
		}
		if good++; good > 10_000 {
			have, total := db.Hydration()
			t.Fatalf("%d good reads, %d of %d bytes are here", good, have, total)
		}
		time.Sleep(10 * time.Millisecond)
	}
	wantErr(t, "get", err, store.ErrCorrupt)
	wantErr(t, "OnHydrated", <-told, store.ErrCorrupt)
	wantErr(t, "apply", applyErr(db, "a", "1"), store.ErrCorrupt)
	if fatal.Load() != 1 {
		t.Errorf("OnFatal was called %d times", fatal.Load())
	}
	mustClose(t, db)
	if len(told) > 0 {
		t.Error("OnHydrated was called again")
	}
	if _, err := Open(dir, Options{FS: fs}); err == nil {
		t.Error("the directory opens")
	}
	if _, err := SetAside(fs, dir); err != nil {
		t.Error(err)
	}
	return good
}

// D-DAMAGED in the remote store: reads of what is good go on until the damage is met, and nothing wrong is ever read.
func TestLazyDamage(t *testing.T) {
	kinds := map[string]func(b []byte, rng *rand.Rand) []byte{
		"missing": func([]byte, *rand.Rand) []byte { return nil },
		"empty":   func([]byte, *rand.Rand) []byte { return []byte{} },
		"truncated": func(b []byte, rng *rand.Rand) []byte {
			return b[:1+rng.IntN(len(b)-1)]
		},
		"flip": func(b []byte, rng *rand.Rand) []byte {
			b = slices.Clone(b)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return b
		},
		"swapped": func(b []byte, rng *rand.Rand) []byte { return slices.Concat(b[len(b)/2:], b[:len(b)/2]) },
	}
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := NewMemFS()
				c, want := sample(t, memory)
				rng := rand.New(rand.NewPCG(11, 11))
				for n := range 4 {
					tables := c.tables()
					victim := tables[n%len(tables)]
					good := c.objects[victim]
					if bad := change(good, rng); bad != nil {
						c.objects[victim] = bad
					} else {
						delete(c.objects, victim)
					}
					l := c.lazy()
					l.BytesPerSecond = 50_000
					t.Logf("%d reads until it was seen", damage(t, c, want, l))
					c.objects[victim] = good
				}
			})
		})
	}
}

// A flip in rows nobody reads is found when the file is complete, and in no other way.
func TestLazyDamageUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, _ := sample(t, memory)
		for name, b := range c.objects {
			if len(b) > 100_000 { // its first third is rows
				c.objects[name] = slices.Clone(b)
				c.objects[name][len(b)/3] ^= 1
			}
		}
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		wantErr(t, "hydrated", <-told, store.ErrCorrupt)
		_, _, err := db.Get(nil, []byte("key00000"))
		wantErr(t, "get", err, store.ErrCorrupt)
		mustClose(t, db)
	})
}

// A remote store that takes 2 s per request only makes things slow.
func TestLazySlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		c.latency = 2 * time.Second
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		begin := time.Now()
		load(t, db, &opRun{ops: [][3]string{{"set", "key00100x", "1"}}})
		load(t, db, rows(50, "mine"))
		apply(t, db, "other", "1")
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		wantRow(t, db, "key00049", "mine")
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("a load and a read took %v", took)
		}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		if n := len(all(t, db)); n != len(want)+2 {
			t.Errorf("%d rows, want %d", n, len(want)+2)
		}
		mustClose(t, db)
	})
}

// A remote store that is down for ten minutes makes reads wait, and nothing else.
func TestLazyDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		c.down = true
		l := c.lazy()
		told := hydrated(&l)
		begin := time.Now()
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		for n := range 40 {
			apply(t, db, fmt.Sprint("mine", n), "1")
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("writes took %v", took)
		}
		time.AfterFunc(10*time.Minute, func() { c.set(func() { c.down = false }) })
		if n := len(all(t, db)); n != len(want)+40 {
			t.Errorf("%d rows, want %d", n, len(want)+40)
		}
		took := time.Since(begin)
		if took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("the scan took %v", took)
		}
		if c.requests > 3000 {
			t.Errorf("%d requests", c.requests)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
		mustClose(t, db)
	})
}

// Close, by another goroutine, frees what waits for the remote store.
func TestLazyCloseWhileWaiting(t *testing.T) {
	for name, wait := range map[string]func(*DB) error{
		"get": func(db *DB) error { _, _, err := db.Get(nil, []byte("key00100")); return err },
		"scan": func(db *DB) error {
			it, err := db.Scan(nil, nil)
			if err != nil {
				return err
			}
			for it.Next() {
			}
			_ = it.Key()
			err = it.Err()
			if closeErr := it.Close(); closeErr != nil {
				return closeErr
			}
			return err
		},
		// Whether there is a row between two others, only a table knows.
		"load": func(db *DB) error { return db.Load(&opRun{ops: [][3]string{{"set", "key00100x", "1"}}}) },
	} {
		for _, hang := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hang=%v", name, hang), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := NewMemFS()
					c, want := sample(t, memory)
					if c.down = !hang; hang {
						c.gate = make(chan struct{})
					}
					l := c.lazy()
					told := hydrated(&l)
					db := mustOpenLazy(t, dir, Options{FS: memory, OnFatal: func(err error) { t.Error(err) }}, l)
					var wg sync.WaitGroup
					wg.Go(func() { wantErr(t, name, wait(db), store.ErrClosed) })
					time.Sleep(time.Minute)
					begin := time.Now()
					mustClose(t, db)
					wg.Wait()
					if took := time.Since(begin); took > time.Second {
						t.Errorf("it took %v", took)
					}
					c.set(func() { c.down, c.gate = false, nil })
					if len(told) > 0 {
						t.Errorf("OnHydrated was told %v", <-told)
					}
					db = mustOpenLazy(t, dir, Options{FS: memory}, c.lazy())
					wantRows(t, "reopened", all(t, db), want)
					mustClose(t, db)
				})
			})
		}
	}
}

// A compaction that waits for the remote store when Close is called is no failure of the database.
func TestLazyCloseWhileCompacting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		c.down = true
		o := Options{FS: memory, OnFatal: func(err error) { t.Error(err) }}
		db := mustOpenLazy(t, dir, o, c.lazy())
		for n := range 12 {
			apply(t, db, "key00000", fmt.Sprint(n), "key09999", fmt.Sprint(n))
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		db.o.Shared.limiter.mu.Lock()
		compacting, parked, running := db.place.running, db.place.parked, db.place.l.running
		db.o.Shared.limiter.mu.Unlock()
		if compacting != 1 || parked != 1 || running != 0 {
			t.Errorf("%d compactions, %d wait, %d count", compacting, parked, running)
		}
		apply(t, db, "key09999", "last")
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		mustClose(t, db)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
		c.set(func() { c.down = false })
		db = mustOpenLazy(t, dir, o, c.lazy())
		wantRow(t, db, "key09999", "last")
		wantRow(t, db, "key00000", "11")
		if n := len(all(t, db)); n != len(want)+1 {
			t.Errorf("%d rows, want %d", n, len(want)+1)
		}
		mustClose(t, db)
	})
}

// An iterator that is open at Close is closed with the database.
func TestLazyCloseWithIterator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, _ := sample(t, memory)
		l := c.lazy()
		l.BytesPerSecond = 1
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		it, err := db.Scan(nil, nil)
		if err != nil || !it.Next() {
			t.Fatal(err)
		}
		closed, err := db.Scan(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
		mustClose(t, db)
		if len(it.Key()) == 0 || len(it.Value()) == 0 {
			t.Error("the row is gone")
		}
		if it.Next() {
			t.Error("another row")
		}
		wantErr(t, "iterator", it.Err(), store.ErrClosed)
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	})
}

// D-DISK-FULL while files are fetched: reads go on without keeping anything, and it ends well when there is room.
func TestLazyDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return op.Write && strings.Contains(op.Path, ownPrefix) }}
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: memory.Inject(full.before)}, l)
		full.on.Store(true)
		wantRows(t, "full", all(t, db), want)
		time.Sleep(time.Minute)
		wantRows(t, "still full", all(t, db), want)
		if len(told) > 0 {
			t.Fatal("hydrated on a full disk")
		}
		c.set(func() {
			if c.requests > 5000 {
				t.Errorf("%d requests", c.requests)
			}
		})
		full.on.Store(false)
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		wantRows(t, "hydrated", all(t, db), want)
		mustClose(t, db)
		db = mustOpen(t, dir, Options{FS: memory})
		wantRows(t, "reopened", all(t, db), want)
		mustClose(t, db)
	})
}

// What a failed sync should have made durable is not taken for durable because the next sync succeeds.
func TestLazySyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return op.Sync && strings.Contains(op.Path, partPrefix) }}
		full.on.Store(true)
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: memory.Inject(full.before)}, l)
		time.Sleep(500 * time.Millisecond) // they are tried again after a second
		full.on.Store(false)
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		again := 0
		for _, chunks := range c.fetched {
			for _, n := range chunks {
				again += n - 1
			}
		}
		if again == 0 {
			t.Error("nothing was fetched again")
		}
		wantRows(t, "hydrated", all(t, db), want)
		mustClose(t, db)
	})
}

// A disk that fails makes the database unusable, and does not damage the directory.
func TestLazyBrokenDisk(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			memory := NewMemFS()
			c, want := sample(t, memory)
			broken := &fault{err: syscall.EIO, match: func(op Op) bool {
				return op.Write && op.Sync == sync && strings.Contains(op.Path, partPrefix)
			}}
			l := c.lazy()
			told := hydrated(&l)
			broken.on.Store(true)
			db := mustOpenLazy(t, dir, Options{FS: memory.Inject(broken.before)}, l)
			wantErr(t, "hydrated", <-told, store.ErrStorage)
			_, _, err := db.Get(nil, []byte("key00000"))
			wantErr(t, "get", err, store.ErrStorage)
			mustClose(t, db)
			db = mustOpenLazy(t, dir, Options{FS: memory}, c.lazy())
			wantRows(t, "reopened", all(t, db), want)
			mustClose(t, db)
		})
	}
}

// A file that a compaction has made superfluous is not fetched to its end.
func TestLazyRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, _ := sample(t, memory)
		l := c.lazy()
		l.BytesPerSecond = 2000
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		var b store.Batch
		b.DeleteRange([]byte("a"), []byte("z"))
		if err := db.Apply(&b); err != nil {
			t.Fatal(err)
		}
		apply(t, db, "b", "1")
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := db.pebble.Compact(context.Background(), []byte("a"), []byte("zz"), false); err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		synctest.Wait() // Pebble removes files in the background
		if have, total := db.Hydration(); have != 0 || total != 0 {
			t.Errorf("%d of %d", have, total)
		}
		wantRows(t, "after", all(t, db), []string{"b=1"})
		mustClose(t, db)
		names, _ := memory.List(dir)
		for _, name := range names {
			if strings.HasPrefix(name, partPrefix) {
				t.Errorf("%s is left", name)
			}
		}
		db = mustOpen(t, dir, Options{FS: memory})
		wantRows(t, "reopened", all(t, db), []string{"b=1"})
		mustClose(t, db)
	})
}

// A server that sends too much, or breaks off at every byte, does no harm.
func TestLazyOddBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		l := c.lazy()
		told := hydrated(&l)
		var n atomic.Int64
		l.Fetch = func(ctx context.Context, f LazyFile, offset, length int64) (io.ReadCloser, error) {
			b := c.objects[f.Name][offset:]
			if n.Add(1)%2 == 0 {
				b = b[:min(len(b), 1000)]
			}
			return io.NopCloser(strings.NewReader(string(b))), nil
		}
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		wantRows(t, "hydrating", all(t, db), want)
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		mustClose(t, db)
	})
}

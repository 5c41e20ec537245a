package pebblestore

import (
	"testing"
	"testing/synctest"
	"time"
)

// A quiet database is fetched and compacts when it is settled, and not before.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		c, want := sample(t, fs)
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: fs, Quiet: true}, l)
		time.Sleep(quietTime - time.Second)
		if have, total := db.Hydration(); have > total/10 {
			t.Errorf("%d of %d bytes are here, more than opening reads", have, total)
		}
		if !db.held() {
			t.Error("it may compact")
		}
		db.Settle()
		if db.Settle(); !db.lazy.complete.Load() && !db.held() {
			t.Error("it may compact before it is complete")
		}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if db.held() {
			t.Error("it may not compact")
		}
		wantRows(t, "settled", all(t, db), want)
		mustClose(t, db)
		db.Settle()
	})
}

// Nothing waits for a call that does not come: the fetches for a time, the compactions for a number of runs.
func TestQuietEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		c, _ := sample(t, fs)
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: fs, Quiet: true}, l)
		start := time.Now()
		if err := <-told; err != nil || time.Since(start) < quietTime {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		for i := range quietRuns {
			if !db.held() {
				t.Errorf("after %d runs it may compact", i)
			}
			load(t, db, rows(10, "v"))
		}
		if db.held() {
			t.Errorf("after %d runs it may not compact", quietRuns)
		}
		mustClose(t, db)
	})
}

// What was put off is done by itself once it may be.
func TestQuietCompacts(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *DB){
		"settled": func(_ *testing.T, db *DB) { db.Settle() },
		"runs": func(t *testing.T, db *DB) {
			for range quietRuns - 1 {
				load(t, db, rows(10, "w"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := NewMemFS()
				db := mustOpen(t, dir, Options{FS: fs, Quiet: true})
				for range 6 { // the first finds its place at the bottom
					load(t, db, rows(10, "v"))
				}
				mustClose(t, db)
				db = mustOpen(t, dir, Options{FS: fs, Quiet: true})
				load(t, db, rows(10, "v"))
				synctest.Wait()
				if n := db.pebble.Metrics().Levels[0].TablesCount; n != 6 {
					t.Errorf("%d tables in level 0, it has compacted", n)
				}
				end(t, db)
				synctest.Wait()
				if n := db.pebble.Metrics().Levels[0].TablesCount; n >= 6 {
					t.Errorf("%d tables in level 0, it has not compacted", n)
				}
				mustClose(t, db)
			})
		})
	}
}

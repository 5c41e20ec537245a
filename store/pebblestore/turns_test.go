package pebblestore

import (
	"testing"
	"testing/synctest"
	"time"
)

// While a read waits there is one background fetch, then as many as are allowed.
func TestReadsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		c, want := sample(t, fs)
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: fs, Quiet: true}, l)
		synctest.Wait()
		gate := make(chan struct{})
		c.set(func() { c.gate = gate })
		reads := func(n int) {
			db.lazy.mu.Lock()
			db.lazy.turns.reads += n
			db.lazy.turns.last = time.Now()
			db.lazy.changed.Broadcast()
			db.lazy.mu.Unlock()
		}
		background := func() int {
			synctest.Wait()
			db.lazy.mu.Lock()
			defer db.lazy.mu.Unlock()
			return db.lazy.turns.background
		}
		reads(1)
		db.Settle()
		if n := background(); n != 1 {
			t.Errorf("%d background fetches while a read waits", n)
		}
		reads(-1)
		if n := background(); n != 1 {
			t.Errorf("%d background fetches right after it", n)
		}
		db.lazy.mu.Lock()
		db.lazy.turns.last = time.Time{}
		db.lazy.changed.Broadcast()
		db.lazy.mu.Unlock()
		if n := background(); n < 2 {
			t.Errorf("%d background fetches when none does", n)
		}
		close(gate)
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		if n := background(); n != 0 {
			t.Errorf("%d background fetches at the end", n)
		}
		wantRows(t, "hydrated", all(t, db), want)
	})
}

func TestReading(t *testing.T) {
	now := time.Unix(1, 0)
	for _, c := range []struct {
		turns turns
		want  bool
	}{
		{turns{}, false},
		{turns{reads: 1}, true},
		{turns{last: now.Add(-yieldTime)}, false},
		{turns{last: now.Add(-yieldTime + 1)}, true},
		{turns{reads: 2, last: now.Add(-time.Hour)}, true},
	} {
		if got := c.turns.reading(now); got != c.want {
			t.Errorf("%+v: %v", c.turns, got)
		}
	}
}

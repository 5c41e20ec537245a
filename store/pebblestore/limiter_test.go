package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB is a database that wants to compact.
type fakeDB struct {
	mu      sync.Mutex // as Pebble's: held when TrySchedule is called
	m       *member
	queue   int
	onAsked func() // called by GetWaitingCompaction
	h       *harness
}

func alive() bool { return false }

type harness struct {
	mu           sync.Mutex
	running, max int
	done         int
	wg           sync.WaitGroup
}

func (h *harness) run(handle pebble.CompactionGrantHandle) {
	h.mu.Lock()
	h.running++
	h.max = max(h.max, h.running)
	h.mu.Unlock()
	h.wg.Go(func() {
		h.mu.Lock()
		h.running--
		h.done++
		h.mu.Unlock()
		handle.Done()
	})
}

func (d *fakeDB) GetAllowedWithoutPermission() int { return 2 }

func (d *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	if d.onAsked != nil {
		d.onAsked()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue > 0, pebble.WaitingCompaction{}
}

func (d *fakeDB) Schedule(handle pebble.CompactionGrantHandle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue == 0 {
		return false
	}
	d.queue--
	d.h.run(handle)
	return true
}

// want asks for one more compaction, as a database does after a flush. Like Pebble it asks once and then waits.
func (d *fakeDB) want() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue++
	for d.queue > 0 {
		ok, handle := d.m.TrySchedule()
		if !ok {
			return
		}
		d.queue--
		d.h.run(handle)
	}
}

// Every compaction runs, and never more than the limit at a time, whatever the order of events.
func TestLimiter(t *testing.T) {
	for _, limit := range []int{1, 3} {
		h := new(harness)
		l := newLimiter(limit)
		var dbs []*fakeDB
		for range 8 {
			d := &fakeDB{h: h, m: l.member(alive)}
			d.m.Register(2, d)
			dbs = append(dbs, d)
		}
		var wg sync.WaitGroup
		const each = 400
		for i := range dbs {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			wg.Go(func() {
				for range each {
					dbs[rng.IntN(len(dbs))].want()
				}
			})
		}
		wg.Wait()
		h.wg.Wait()
		for _, d := range dbs {
			d.m.Unregister()
		}
		if h.done != each*len(dbs) || h.max > limit || h.running != 0 {
			t.Errorf("limit %d: %d of %d compactions done, %d at a time", limit, h.done, each*len(dbs), h.max)
		}
	}
}

// A database is refused because a place is being offered to another one, which does not want it: nobody else would ask
// for it again.
func TestLimiterRefusedDuringGrant(t *testing.T) {
	h := new(harness)
	l := newLimiter(1)
	a, b := &fakeDB{h: h, m: l.member(alive)}, &fakeDB{h: h, m: l.member(alive)}
	b.m.Register(2, b) // it has had its turn when a is asked
	a.m.Register(2, a)
	a.onAsked = func() {
		a.onAsked = nil
		b.want()
	}
	ok, handle := b.m.TrySchedule()
	if !ok {
		t.Fatal("the first compaction was refused")
	}
	handle.Done()
	h.wg.Wait()
	if h.done != 1 {
		t.Errorf("%d compactions done", h.done)
	}
}

// Databases that share resources compact within the limit; a member that is gone gets no more calls.
func TestSharedDatabases(t *testing.T) {
	s := NewShared(SharedOptions{FS: NewMemFS(), Compactions: 1, CacheBytes: 32 << 20})
	var dbs []*DB
	for n := range 6 {
		dbs = append(dbs, mustOpen(t, fmt.Sprintf("/state/app/task%d", n), Options{Shared: s}))
	}
	for round := range 12 {
		for _, db := range dbs {
			load(t, db, rows(200, fmt.Sprint(round)))
		}
	}
	var compactions int64
	for n, db := range dbs {
		wantRow(t, db, "key00199", "11")
		compactions += db.Metrics().Compactions
		if n%2 == 0 {
			mustClose(t, db)
		}
	}
	for n, db := range dbs {
		if n%2 == 1 {
			load(t, db, rows(200, "last"))
			wantRow(t, db, "key00000", "last")
			mustClose(t, db)
		}
	}
	if compactions == 0 {
		t.Error("nothing was compacted")
	}
	if m := dbs[0].Metrics(); m != (Metrics{}) {
		t.Errorf("metrics of a closed database: %+v", m)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s.limiter.running != 0 || len(s.limiter.members) != 0 {
		t.Errorf("%d compactions, %d members left", s.limiter.running, len(s.limiter.members))
	}
}

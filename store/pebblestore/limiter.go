package pebblestore

import (
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// limiter bounds the compactions that run at a time in all databases of a Shared. Pebble's own scheduler can serve only
// one database and keeps a goroutine with a ticker for it.
type limiter struct {
	mu       sync.Mutex
	idle     sync.Cond // a call into a database has ended
	limit    int
	running  int
	members  []*member
	granting bool // one goroutine is in grant
	again    bool // something has changed since it looked
}

// member is the scheduler one database sees, and the handle of its compactions. Pebble's rule: no lock of ours may be
// held while one of its databases is called, except for GetAllowedWithoutPermission.
type member struct {
	l       *limiter
	barred  func() bool // a database that is unusable would repeat a failing compaction without a pause; a quiet one waits
	db      pebble.DBForCompaction
	running int
	parked  int // of running
	calls   int // into db, in progress
	gone    bool
}

func newLimiter(limit int) *limiter {
	l := &limiter{limit: limit}
	l.idle.L = &l.mu
	return l
}

func (l *limiter) member(barred func() bool) *member { return &member{l: l, barred: barred} }

// Register is called once, when the database has been opened.
func (m *member) Register(_ int, db pebble.DBForCompaction) {
	m.l.mu.Lock()
	defer m.l.mu.Unlock()
	m.db = db
	m.l.members = append(m.l.members, m)
}

// Unregister returns when no call into the database is in progress and none will follow.
func (m *member) Unregister() {
	l := m.l
	l.mu.Lock()
	defer l.mu.Unlock()
	m.gone = true
	l.members = slices.DeleteFunc(l.members, func(o *member) bool { return o == m })
	for m.calls > 0 {
		l.idle.Wait()
	}
}

// TrySchedule is called by the database, under its lock.
func (m *member) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	m.l.mu.Lock()
	defer m.l.mu.Unlock()
	if !m.reserve() {
		m.l.again = true // a grant that fails now may have been the reason
		return false, nil
	}
	return true, m
}

func (m *member) reserve() bool {
	if m.gone || m.barred() || m.l.running >= m.l.limit || m.running >= m.db.GetAllowedWithoutPermission() {
		return false
	}
	m.l.running++
	m.running++
	return true
}

func (m *member) release() {
	m.l.running--
	m.running--
}

// UpdateGetAllowedWithoutPermission does nothing: the next end of a compaction looks at the number anyway, and while a
// database waits, one is running.
func (m *member) UpdateGetAllowedWithoutPermission() {}

// Started, MeasureCPU and CumulativeStats are for schedulers that watch resources.
func (m *member) Started()                                          {}
func (m *member) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (m *member) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done is called at the end of a compaction, without locks.
func (m *member) Done() {
	m.l.mu.Lock()
	m.release()
	m.l.mu.Unlock()
	m.l.grant()
}

// park gives the place of a compaction to others while it waits for a remote store. Its result takes a place back, above
// the limit if there is none.
func (m *member) park() (unpark func()) {
	l := m.l
	l.mu.Lock()
	if m.parked == m.running { // it is no compaction that waits
		l.mu.Unlock()
		return func() {}
	}
	m.parked++
	l.running--
	l.mu.Unlock()
	l.grant()
	return func() {
		l.mu.Lock()
		m.parked--
		l.running++
		l.mu.Unlock()
	}
}

// grant offers free places to the databases, in turn.
func (l *limiter) grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again = true; l.granting {
		return
	}
	l.granting = true
	for l.again {
		l.again = false
		for _, m := range slices.Clone(l.members) {
			if !m.reserve() {
				continue
			}
			m.calls++
			l.mu.Unlock()
			waiting, _ := m.db.GetWaitingCompaction()
			taken := waiting && m.db.Schedule(m)
			l.mu.Lock()
			if m.calls--; m.calls == 0 {
				l.idle.Broadcast()
			}
			if !taken {
				m.release()
				continue
			}
			// It has had its turn.
			if i := slices.Index(l.members, m); i >= 0 {
				l.members = append(slices.Delete(l.members, i, i+1), m)
			}
			l.again = l.again || l.running < l.limit
		}
	}
	l.granting = false
}

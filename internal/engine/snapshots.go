package engine

import (
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// RestoreMode says how a snapshot is brought to an empty directory.
type RestoreMode int

const (
	// RestoreAuto opens a snapshot at once if fetching it would take more than a second, and fetches it first otherwise.
	RestoreAuto RestoreMode = iota
	// RestoreLazy always opens it at once and fetches it while the task runs.
	RestoreLazy
	// RestoreFull always fetches all of it first.
	RestoreFull
)

// Snapshots says where copies of the databases go, and how the databases of tasks are copied and made from copies.
type Snapshots struct {
	// Store keeps them.
	Store objects.Store
	// Interval is the time after which a task with changes is copied. Default: 10 min.
	Interval time.Duration
	// Bytes of changelog after which it is copied earlier. Default: a third of the last snapshot, at least 64 MiB.
	Bytes int64
	// Keep is the number of snapshots a task keeps. Default: 3.
	Keep int
	// Restore is the mode of restores.
	Restore RestoreMode
	// FetchRate is how fast objects are fetched, in bytes per second: a guess that decides between snapshot and changelog.
	// Default: 100 MB.
	FetchRate float64
	// ReplayRate is how fast changelogs are replayed, in records per second: a guess like FetchRate. Default: 500,000.
	ReplayRate float64

	// Rate bounds uploads and what is read for them. Default: no bound.
	Rate *rate.Limiter
	// Grace is how old an object must be before it may be deleted. Default: snapshot.Grace.
	Grace time.Duration

	// Format is the newest version of database files that this build opens, and the one it writes.
	Format int
	// Dir copies the databases that OpenStore has opened, and makes databases from copies.
	Dir Copier
}

// Copier copies databases of tasks and makes them from copies. For one task it is called by one goroutine at a time.
type Copier interface {
	// Checkpoint makes a copy that stands still of an open database. It is called by the goroutine that writes to it.
	Checkpoint(id processor.TaskID, db store.DB) (snapshot.Copy, error)
	// Fill begins to replace the database of a task, which is closed, by files of a snapshot.
	Fill(id processor.TaskID) (snapshot.Filling, error)
	// Lazy opens the database of a task, in a directory that is empty or was left by an earlier Lazy of the same snapshot.
	Lazy(id processor.TaskID, r snapshot.Source) (store.DB, error)
	// Missing returns the snapshot, a key, of which the directory of a task still lacks files.
	Missing(id processor.TaskID) (key string, ok bool, err error)
	// Hydration returns how much of a lazily opened database is here, in bytes.
	Hydration(db store.DB) (have, total int64)
	// Settle is called, by any goroutine, when nobody waits for a restore any more: what the database does in the background
	// may have been put off until then.
	Settle(db store.DB)
}

func (s *Snapshots) setDefaults() {
	def(&s.Interval, 10*time.Minute)
	def(&s.Grace, snapshot.Grace)
	if s.Keep <= 0 {
		s.Keep = 3
	}
	if s.FetchRate <= 0 {
		s.FetchRate = 100e6
	}
	if s.ReplayRate <= 0 {
		s.ReplayRate = 500e3
	}
}

const (
	// leastSnapshotBytes is the changelog below which only the interval makes a snapshot due.
	leastSnapshotBytes = 64 << 20
	// snapshotAlarm is how many failures in a row are told as an alarm.
	snapshotAlarm = 3
	// objectTimeout bounds one request for a manifest while a task waits for it.
	objectTimeout = 5 * time.Second
)

// due says whether a task's snapshot is due: the changes since the last one are worth it, or it is old.
func (s *Snapshots) due(now, last time.Time, changed, size int64) bool {
	limit := s.Bytes
	if limit <= 0 {
		limit = max(leastSnapshotBytes, size/3)
	}
	return changed >= limit || changed > 0 && now.Sub(last) >= s.Interval
}

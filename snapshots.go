package tidemark

import (
	"fmt"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// RestoreMode says how a snapshot is brought to an instance that has no state of a task.
type RestoreMode = engine.RestoreMode

// The modes of restores.
const (
	// RestoreAuto fetches small snapshots before the task runs and opens large ones, which take longer than a second,
	// lazily.
	RestoreAuto = engine.RestoreAuto
	// RestoreLazy runs the task at once: what it reads is fetched then, and everything else in the background.
	RestoreLazy = engine.RestoreLazy
	// RestoreFull fetches every snapshot before the task runs: it starts later and is never slowed by the object store.
	RestoreFull = engine.RestoreFull
)

// SnapshotInfo is what became of a snapshot.
type SnapshotInfo = engine.SnapshotInfo

// Snapshots configures copies of the tasks' databases in an object store. Losing all of them loses nothing: the changelogs
// hold the state, a snapshot only makes a restore fast. An object store that is slow or down never stops processing.
type Snapshots struct {
	// Store keeps the copies: objects.NewDir for a directory that instances share, s3.New for a bucket. All instances of an
	// app must use the same one. The zero value makes no snapshots. It needs a StateDir.
	Store objects.Store
	// Interval is the time between two snapshots of a task that has changed. Default: 10 minutes.
	Interval time.Duration
	// ChangelogBytes are the bytes of changelog after which a snapshot is made earlier. Default: a third of the size of the
	// last one, at least 64 MiB.
	ChangelogBytes int64
	// Keep is the number of snapshots kept per task. Default: 3.
	Keep int
	// Restore is the mode of restores. Default: RestoreAuto.
	Restore RestoreMode
	// BytesPerSecond bounds what this instance moves in the background, all tasks together: uploads, the reading of new files
	// to learn their sums, and the fetches of lazily opened databases. What a task waits for is not bounded. Default: 50 MiB;
	// a negative value means no bound.
	BytesPerSecond int64
}

const defaultSnapshotRate = 50 << 20

func (s *Snapshots) check(stateDir string) (errs []error) {
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("tidemark: config: Snapshots.%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if s.Store == nil {
		return nil
	}
	if stateDir == "" {
		bad("Store", "needs a StateDir: state in memory has no files to copy")
	}
	if s.Interval < 0 || s.Interval > maxDuration {
		bad("Interval", "is %v, must be between 0 and %v", s.Interval, maxDuration)
	}
	if s.ChangelogBytes < 0 {
		bad("ChangelogBytes", "is %d, must not be negative", s.ChangelogBytes)
	}
	if s.Keep < 0 {
		bad("Keep", "is %d, must not be negative", s.Keep)
	}
	if s.Restore < RestoreAuto || s.Restore > RestoreFull {
		bad("Restore", "is %d, must be RestoreAuto, RestoreLazy or RestoreFull", s.Restore)
	}
	return errs
}

// rate returns the bound of what happens in the background, 0 for none.
func (s *Snapshots) rate() int64 {
	if s.BytesPerSecond == 0 {
		return defaultSnapshotRate
	}
	return max(s.BytesPerSecond, 0)
}

// snapshots translates the configuration for the engine.
func (c *Config) snapshots(s *stores) *engine.Snapshots {
	if c.Snapshots.Store == nil {
		return nil
	}
	return &engine.Snapshots{
		Store: c.Snapshots.Store, Rate: s.rate,
		Interval: c.Snapshots.Interval, Bytes: c.Snapshots.ChangelogBytes, Keep: c.Snapshots.Keep, Restore: c.Snapshots.Restore,
		Format: pebblestore.FormatVersion(), Dir: s.tasks, Grace: c.Testing.SnapshotGrace,
	}
}

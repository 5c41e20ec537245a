package pebblestore

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/internal/clock"
)

// SharedOptions are the resources of all databases of a process.
type SharedOptions struct {
	// CacheBytes is the size of the block cache. Memtables are reserved out of it, up to 16 MB per database that is
	// written in batches. Default: 128 MB.
	CacheBytes int64
	// Clock times the pause of writes that find the disk full. Default: the real one.
	Clock clock.Clock
	// Compactions is the number of compactions that may run at a time. Default: half of GOMAXPROCS, at least 1.
	Compactions int
	// FS is the file system. Default: that of the operating system.
	FS *FS
	// OnSlowDisk is told of an operation on the disk that takes longer than SlowDisk, while it still does. It may be
	// called by any goroutine and must not block. Default: nobody is told.
	OnSlowDisk func(operation, path string, took time.Duration)
	// OpenFiles is the number of table files that are kept open. Default: 1000.
	OpenFiles int
	// SlowDisk is the limit for OnSlowDisk. Default: 5 s.
	SlowDisk time.Duration
}

// Shared is what databases of one process have in common: block cache, table files, file system, places for
// compactions. It is safe for concurrent use.
type Shared struct {
	cache   *pebble.Cache
	files   *pebble.FileCache
	limiter *limiter
	fs      vfs.FS
	watch   io.Closer // of fs
	clock   clock.Clock
}

// NewShared returns resources to be passed to Open. Close them after the last database.
func NewShared(o SharedOptions) *Shared {
	if o.CacheBytes <= 0 {
		o.CacheBytes = 128 << 20
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Compactions <= 0 {
		o.Compactions = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if o.FS == nil {
		o.FS = OSFS()
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = 1000
	}
	if o.SlowDisk <= 0 {
		o.SlowDisk = 5 * time.Second
	}
	s := &Shared{
		cache:   pebble.NewCache(o.CacheBytes),
		files:   pebble.NewFileCache(runtime.GOMAXPROCS(0), o.OpenFiles),
		limiter: newLimiter(o.Compactions),
		fs:      o.FS.fs,
		clock:   o.Clock,
	}
	if o.OnSlowDisk != nil {
		s.fs, s.watch = vfs.WithDiskHealthChecks(o.FS.fs, o.SlowDisk, nil, func(i vfs.DiskSlowInfo) {
			o.OnSlowDisk(i.OpType.String(), i.Path, i.Duration)
		})
	}
	return s
}

// Close releases the resources. All databases must be closed before.
func (s *Shared) Close() error {
	s.files.Unref()
	s.cache.Unref()
	if s.watch == nil {
		return nil
	}
	if err := s.watch.Close(); err != nil {
		return fmt.Errorf("pebblestore: close: %w", err)
	}
	return nil
}

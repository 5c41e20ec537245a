package pebblestore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/tidemark/tidemark/store"
)

// formatVersion is pinned: a database never goes back to an older format, so a newer one comes with a release that says
// so, never with an update of Pebble. This one has checksums over everything and no value separation.
const formatVersion = pebble.FormatTableFormatV6

const memTableSize = 8 << 20

// Compression is the compression of table files.
type Compression uint8

const (
	// Snappy is fast and the default.
	Snappy Compression = iota
	// NoCompression is for values that are compressed or encrypted already.
	NoCompression
)

// Logger takes what Pebble has to say.
type Logger interface {
	// Infof is for events of normal operation: there are many.
	Infof(format string, args ...any)
	// Errorf is for everything that needs attention.
	Errorf(format string, args ...any)
}

// Options configure one database.
type Options struct {
	// Compression of table files. Default: Snappy.
	Compression Compression
	// FS is the file system. Default: that of Shared.
	FS *FS
	// Logger takes Pebble's messages. Default: none.
	Logger Logger
	// OnFatal is called once if the database becomes unusable while it is open; the error wraps store.ErrStorage or
	// store.ErrCorrupt. It is called by any goroutine, possibly inside a call of the DB, and must neither block nor call
	// the DB. Default: nobody is told; the next call of the DB returns the error.
	OnFatal func(error)
	// Quiet puts off compactions, and the background fetches of OpenLazy, until Settle is called: they would take processor
	// and network from a restore. Compactions begin anyway after eight Loads, the fetches after ten seconds; an incomplete
	// database does not compact before it is complete, or eight Loads. Default: nothing is put off.
	Quiet bool
	// Shared holds the resources that databases have in common. Default: resources of its own.
	Shared *Shared
}

// DB is one database.
type DB struct {
	o      Options
	dir    string
	gate   *gate
	lock   *pebble.Lock
	pebble *pebble.DB
	popts  *pebble.Options
	place  *member // among the databases that compact
	own    *Shared // to be closed with the DB; nil if shared

	fatal      atomic.Pointer[error] // why the database is unusable
	background atomic.Pointer[error] // why flushes or compactions fail at present
	failed     chan struct{}         // background has been set; capacity 1

	unflushed int64 // bytes applied since the last flush
	runs      int   // loaded so far: names files

	settle  sync.Once
	settled chan struct{} // closed by Settle
	loads   atomic.Int32  // runs loaded since it was opened, if it is quiet

	lazy  *lazy // nil if Open has opened it
	calls calls

	closeOnce sync.Once
	closed    atomic.Bool
	closeErr  error
}

var _ store.DB = (*DB)(nil)

// Open opens the database in dir and makes it, with mode 0700, if there is none. The error wraps store.ErrLocked if it
// is open already, here or in another process, store.ErrCorrupt if its files are damaged, store.ErrStorage if the disk
// refuses, store.ErrHydrating if files are missing and OpenLazy must open it. A failed Open leaves the files as they are.
func Open(dir string, o Options) (*DB, error) { return openDB(dir, o, nil) }

func openDB(dir string, o Options, l *Lazy) (*DB, error) {
	d := &DB{o: o, failed: make(chan struct{}, 1), settled: make(chan struct{})}
	if d.o.Shared == nil {
		d.own = NewShared(SharedOptions{FS: o.FS})
		d.o.Shared = d.own
	}
	fs := d.o.Shared.fs
	if o.FS != nil {
		fs = o.FS.fs
	}
	d.gate = &gate{FS: fs, clock: d.o.Shared.clock}
	if err := d.start(dir, l); err != nil {
		_ = d.release()
		return nil, fmt.Errorf("pebblestore: open %s: %w", dir, err)
	}
	return d, nil
}

func (d *DB) start(dir string, l *Lazy) error {
	if l != nil {
		if err := l.prepare(&FS{fs: d.gate}, dir); err != nil {
			return err
		}
	}
	err := makeDir(d.gate, dir)
	if err == nil {
		d.dir, err = (&FS{fs: d.gate}).canonical(dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	if d.lock, err = pebble.LockDirectory(d.dir, d.gate); err != nil {
		return classifyLock(err)
	}
	if err := d.removeRuns(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	if err := d.setLazy(l); err != nil {
		return err
	}
	if err := d.breakSeal(); err != nil {
		return err
	}
	d.popts = d.options()
	if d.pebble, err = pebble.Open(d.dir, d.popts); err != nil {
		if fatal := d.fatal.Load(); fatal != nil {
			return *fatal
		}
		return classifyOpen(err)
	}
	if d.lazy != nil {
		return d.lazy.start()
	}
	return nil
}

func (d *DB) options() *pebble.Options {
	s := d.o.Shared
	o := &pebble.Options{
		Cache:                       s.cache,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, s.limiter.limit) },
		DisableWAL:                  true,
		EventListener:               d.events(),
		FS:                          d.gate,
		FileCache:                   s.files,
		FormatMajorVersion:          formatVersion,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       40,
		Lock:                        d.lock,
		Logger:                      (*logger)(d),
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: 8, // Apply bounds what is unflushed by itself, see write.go
	}
	d.place = s.limiter.member(func() bool { return d.gate.shut.Load() || d.closed.Load() || d.held() })
	o.Experimental.CompactionScheduler = d.place
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy { return pebble.ValueSeparationPolicy{} }
	compression := sstable.SnappyCompression
	if d.o.Compression == NoCompression {
		compression = sstable.NoCompression
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return compression }
	}
	if d.lazy != nil {
		o.FS = d.lazy
		// A compaction may wait for files as long as their store is down, and writes must not wait for it.
		o.L0StopWritesThreshold = 1000
	}
	o.EnsureDefaults()
	return o
}

func (d *DB) events() *pebble.EventListener {
	l := &pebble.EventListener{
		BackgroundError: func(err error) {
			err = classify(err)
			if errors.Is(err, store.ErrClosed) {
				return // it waited for a file when Close was called
			}
			if hopeless(err) || isCorrupt(err) {
				d.die(err)
				return
			}
			d.background.Store(&err)
			select {
			case d.failed <- struct{}{}:
			default:
			}
			(*logger)(d).Errorf("background error: %v", err)
		},
		CompactionEnd: func(i pebble.CompactionInfo) {
			if i.Err == nil {
				d.background.Store(nil)
			}
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			d.die(fmt.Errorf("%w: %s: %w", store.ErrCorrupt, i.Path, i.Details))
		},
		FlushEnd: func(i pebble.FlushInfo) {
			if i.Err == nil {
				d.background.Store(nil)
			}
		},
	}
	// Also makes the listeners that are not set do nothing instead of logging, or dying.
	l.EnsureDefaults(nil)
	return l
}

// die makes the database unusable. The gate comes first: whoever sees the error must see a disk at rest.
func (d *DB) die(err error) {
	d.gate.shut.Store(true)
	if !d.fatal.CompareAndSwap(nil, &err) {
		return
	}
	select {
	case d.failed <- struct{}{}:
	default:
	}
	(*logger)(d).Errorf("database is unusable: %v", err)
	if d.o.OnFatal != nil {
		d.o.OnFatal(err)
	}
	if d.lazy != nil {
		d.lazy.halt()
	}
}

// usable is asked before every operation.
func (d *DB) usable() error {
	if d.closed.Load() {
		return store.ErrClosed
	}
	if err := d.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

// fail wraps an error of Pebble for the caller. Damage makes the database unusable.
func (d *DB) fail(what string, err error) error {
	if fatal := d.usable(); fatal != nil {
		err = fatal
	} else if err = classify(err); isCorrupt(err) {
		d.die(err)
	}
	return fmt.Errorf("pebblestore: %s: %w", what, err)
}

// Close implements store.DB.
func (d *DB) Close() error {
	d.closeOnce.Do(func() {
		d.closed.Store(true)
		if d.lazy != nil {
			d.lazy.free()
			d.calls.drain()
		}
		if err := d.release(); err != nil {
			d.closeErr = fmt.Errorf("pebblestore: close: %w: %w", store.ErrStorage, err)
		}
	})
	return d.closeErr
}

// release closes what open has opened.
func (d *DB) release() error {
	var err error
	if d.lazy != nil {
		d.lazy.free()
	}
	if d.pebble != nil {
		err = d.pebble.Close()
		if d.lazy != nil {
			if lazyErr := d.lazy.stop(); err == nil {
				err = lazyErr
			}
		}
		if err == nil {
			err = d.writeSeal()
		}
		if d.gate.shut.Load() {
			err = nil // it has been reported, and what Close says of the shut file system is no news
		}
	}
	if d.lock != nil {
		if lockErr := d.lock.Close(); err == nil {
			err = lockErr
		}
	}
	if d.own != nil {
		if ownErr := d.own.Close(); err == nil {
			err = ownErr
		}
	}
	return err
}

// logger is the DB as Pebble's logger.
type logger DB

func (l *logger) Infof(format string, args ...any) {
	if l.o.Logger != nil {
		l.o.Logger.Infof(format, args...)
	}
}

func (l *logger) Errorf(format string, args ...any) {
	if l.o.Logger != nil {
		l.o.Logger.Errorf(format, args...)
	}
}

// Fatalf is Pebble's last word; it expects the process to end. The callers of the version we pin return an error to
// their own callers when it does not.
func (l *logger) Fatalf(format string, args ...any) {
	(*DB)(l).die(fmt.Errorf("%w: %s", store.ErrStorage, fmt.Sprintf(format, args...)))
}

package pebblestore

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/internal/clock"
)

// fullDiskPause is how long a write that found the disk full waits before it fails. Pebble repeats a failed flush or
// compaction at once: without the pause it makes 17,000 attempts a second.
const fullDiskPause = 100 * time.Millisecond

var errShut = errors.New("the database is shut down after a fatal error")

// gate is the file system of one database. It can be shut: after that nothing changes the disk any more. Pebble calls
// Fatalf when it does not know what has reached the manifest; whatever it did next, above all clean up, could remove
// files the manifest refers to. Reads and the removal of the lock pass.
type gate struct {
	vfs.FS
	clock clock.Clock
	shut  atomic.Bool
}

// check refuses changes once the gate is shut. The pause keeps Pebble's retries from spinning until Close.
func (g *gate) check() error {
	if g.shut.Load() {
		return errShut
	}
	return nil
}

func (g *gate) start() error {
	err := g.check()
	if err != nil {
		<-g.clock.After(fullDiskPause)
	}
	return err
}

// done slows down callers that hit a full disk.
func (g *gate) done(err error) error {
	if err != nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		<-g.clock.After(fullDiskPause)
	}
	return err
}

// Open implements vfs.FS. Pebble repeats without a pause what it does in the background, and fails on a damaged table.
func (g *gate) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.shut.Load() {
		<-g.clock.After(fullDiskPause)
	}
	return g.FS.Open(name, opts...)
}

func (g *gate) file(f vfs.File, err error) (vfs.File, error) {
	if err = g.done(err); err != nil {
		return nil, err
	}
	return gatedFile{f, g}, nil
}

// Create implements vfs.FS. A marker names the manifest in force. Pebble does not make sure that the name of the manifest
// itself is on disk before that of the marker.
func (g *gate) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(g.PathBase(name), "marker.manifest.") {
		if err := syncDir(g.FS, g.PathDir(name)); err != nil {
			return nil, g.done(err)
		}
	}
	return g.file(g.FS.Create(name, c))
}

func (g *gate) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	return g.file(g.FS.OpenReadWrite(name, c, opts...))
}

func (g *gate) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	return g.file(g.FS.ReuseForWrite(oldname, newname, c))
}

func (g *gate) Link(oldname, newname string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.done(g.FS.Link(oldname, newname))
}

func (g *gate) Remove(name string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *gate) RemoveAll(name string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.FS.RemoveAll(name)
}

func (g *gate) Rename(oldname, newname string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.done(g.FS.Rename(oldname, newname))
}

func (g *gate) MkdirAll(dir string, perm os.FileMode) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.done(g.FS.MkdirAll(dir, perm))
}

func (g *gate) Unwrap() vfs.FS { return g.FS }

// gatedFile is a file opened for writing.
type gatedFile struct {
	vfs.File
	g *gate
}

func (f gatedFile) Write(p []byte) (int, error) {
	if err := f.g.check(); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	return n, f.g.done(err)
}

func (f gatedFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.g.check(); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(p, off)
	return n, f.g.done(err)
}

func (f gatedFile) Preallocate(off, n int64) error {
	if err := f.g.check(); err != nil {
		return err
	}
	return f.g.done(f.File.Preallocate(off, n))
}

func (f gatedFile) Sync() error {
	if err := f.g.check(); err != nil {
		return err
	}
	return f.g.done(f.File.Sync())
}

func (f gatedFile) SyncData() error {
	if err := f.g.check(); err != nil {
		return err
	}
	return f.g.done(f.File.SyncData())
}

func (f gatedFile) SyncTo(n int64) (bool, error) {
	if err := f.g.check(); err != nil {
		return false, err
	}
	full, err := f.File.SyncTo(n)
	return full, f.g.done(err)
}

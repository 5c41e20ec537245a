package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/store"
)

// restoreSuffix ends the name of the directory a restore collects its files in.
const restoreSuffix = ".restore"

// Restore makes the directory of a database out of the files of a checkpoint. They are collected beside it and take its
// place when they are complete, so a crash leaves the old directory, the new one or none, never a mixture.
type Restore struct {
	fs   *FS
	dir  string
	temp string // collects the files
	old  string // what was in dir, on its way out
}

// RestoreFile is a file that is being written. Close makes it durable.
type RestoreFile interface {
	io.WriteCloser
	// Sync makes what was written durable.
	Sync() error
}

// NewRestore begins to restore the database in dir and removes what an earlier attempt has left. A nil fs is that of the
// operating system. End it with Finish or Abort. One goroutine at a time restores a directory.
func NewRestore(fs *FS, dir string) (*Restore, error) {
	if fs == nil {
		fs = OSFS()
	}
	dir = filepath.Clean(dir)
	r := &Restore{fs: fs, dir: dir, temp: dir + restoreSuffix, old: dir + ".old" + restoreSuffix}
	err := r.clear()
	if err == nil {
		err = makeDir(fs.fs, r.temp)
	}
	if err != nil {
		return nil, fmt.Errorf("pebblestore: restore %s: %w: %w", dir, store.ErrStorage, err)
	}
	return r, nil
}

func (r *Restore) clear() error {
	return errors.Join(r.fs.fs.RemoveAll(r.temp), r.fs.fs.RemoveAll(r.old))
}

// Create makes a file of the name it has in the checkpoint. It may be called by several goroutines, with different names.
func (r *Restore) Create(name string) (RestoreFile, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("pebblestore: restore: %w", err)
	}
	f, err := r.fs.fs.Create(filepath.Join(r.temp, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("pebblestore: restore: %w: %w", store.ErrStorage, err)
	}
	return &restoreFile{File: f}, nil
}

type restoreFile struct {
	vfs.File
	buf   []byte
	dirty bool
}

// Write implements io.Writer. Pebble's file systems may change what they are given, which a Writer must not.
func (f *restoreFile) Write(p []byte) (int, error) {
	f.dirty = true
	f.buf = append(f.buf[:0], p...)
	return f.File.Write(f.buf)
}

// Sync makes what was written durable.
func (f *restoreFile) Sync() error {
	err := f.File.Sync()
	f.dirty = f.dirty && err != nil
	return err
}

// Close implements io.Closer.
func (f *restoreFile) Close() error {
	var err error
	if f.dirty {
		err = f.File.Sync()
	}
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Finish puts the files, which must be closed, in the place of the database and removes what was there. It refuses with
// store.ErrLocked while the database there is open.
func (r *Restore) Finish() error {
	put := func(fs *FS, dir string) error {
		if err := fs.fs.Rename(r.temp, dir); err != nil {
			return err
		}
		return syncDir(fs.fs, filepath.Dir(dir))
	}
	err := syncDir(r.fs.fs, r.temp)
	if err == nil {
		if _, err = r.fs.fs.Stat(r.dir); err == nil {
			err = withLock(r.fs, r.dir, func(fs *FS, dir string) error {
				// A half-removed database could still open, as an older one.
				if err := fs.fs.Rename(dir, r.old); err != nil {
					return err
				}
				return put(fs, dir)
			})
			_ = r.fs.fs.RemoveAll(r.old) // NewRestore and RemoveCheckpoints remove what is left
		} else if errors.Is(err, os.ErrNotExist) {
			err = put(r.fs, r.dir)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrStorage):
		return fmt.Errorf("pebblestore: restore %s: %w", r.dir, err)
	}
	return fmt.Errorf("pebblestore: restore %s: %w: %w", r.dir, store.ErrStorage, err)
}

// Abort removes the files collected so far. After Finish it does nothing.
func (r *Restore) Abort() error {
	if err := r.clear(); err != nil {
		return fmt.Errorf("pebblestore: abort restore: %w: %w", store.ErrStorage, err)
	}
	return nil
}

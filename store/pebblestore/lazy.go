package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/store"
)

// LazyFile is one file of a snapshot of a database.
type LazyFile struct {
	// Name is its name in the checkpoint the snapshot was taken of.
	Name string
	// Size is its length in bytes, Sum the SHA-256 of its content. They are not needed with Data.
	Size int64
	Sum  [32]byte
	// Data is its content, for a file that is not fetched. Every file that is no table (.sst) has it.
	Data []byte
}

// Lazy is a snapshot to open a database from, and the way to its files.
type Lazy struct {
	// Identity names the snapshot; it is kept in the directory until all files are there. Required.
	Identity string
	// Files are the files of the snapshot. They are not used when the directory has them from an earlier OpenLazy.
	Files []LazyFile
	// Fetch opens length bytes of a file, of which offset and length lie inside. It is called by several goroutines and
	// must come back soon after ctx has ended, as the reads of its result must. An error that wraps store.ErrCorrupt or
	// fs.ErrNotExist is final; after any other one, or a body that is too short, it is called again, with a pause that
	// grows from 100 ms to 5 s, until the database is closed. Ten empty bodies in a row are taken for a file that is too
	// short. Required.
	Fetch func(ctx context.Context, file LazyFile, offset, length int64) (io.ReadCloser, error)
	// OnHydrated is called once, by another goroutine: with nil when all files are there and verified, or with the error
	// that has made the database unusable, after Options.OnFatal. It is not called if the database is closed before. It
	// must neither block nor call the DB. Default: nobody is told.
	OnHydrated func(error)
	// ChunkBytes is the smallest amount that is fetched. Default: 256 KiB.
	ChunkBytes int64
	// Parallel is the number of background fetches at a time. Those that a read waits for are in addition. Default: 4.
	Parallel int
	// BytesPerSecond bounds the background fetches together. Default: no bound.
	BytesPerSecond int64
	// Rate bounds the background fetches together with everything else that has the same one, instead of BytesPerSecond. What
	// a read waits for does not ask it.
	Rate *rate.Limiter
}

func (l *Lazy) setDefaults() error {
	if l.Identity == "" || l.Fetch == nil {
		return errors.New("no Identity or no Fetch")
	}
	if l.ChunkBytes <= 0 {
		l.ChunkBytes = 256 << 10
	}
	if l.Parallel <= 0 {
		l.Parallel = 4
	}
	return nil
}

// OpenLazy opens a database whose table files are in a remote store. It returns at once; what a read needs is fetched
// then, in chunks that are kept, and everything else in the background: first the ends of all files, where their indexes
// are, then those that are read most. A file is complete when its sum has been compared; the directory is that of an
// ordinary database when all are.
//
// A directory that does not exist, or is empty, becomes a copy of the snapshot. One that an earlier OpenLazy has left
// incomplete is opened as it is, if its identity is the same: what was fetched is not fetched again. Any other one is
// refused with an error that wraps fs.ErrExist.
//
// While the remote store is slow or down, calls that need it wait. Close may be called by another goroutine meanwhile:
// those calls then return store.ErrClosed, and iterators are closed. Files that are gone or damaged make the database
// unusable with store.ErrCorrupt, when a read or the background comes upon them.
func OpenLazy(dir string, o Options, l Lazy) (*DB, error) {
	if err := l.setDefaults(); err != nil {
		return nil, fmt.Errorf("pebblestore: open %s: %w", dir, err)
	}
	return openDB(dir, o, &l)
}

// LazyIdentity returns the identity of the snapshot from which files in dir are still missing, and false if none are. Such
// a directory can be opened by OpenLazy only. A nil fs is that of the operating system.
func LazyIdentity(fs *FS, dir string) (string, bool, error) {
	if fs == nil {
		fs = OSFS()
	}
	s, err := readLazyState(fs, dir)
	if err != nil || s == nil {
		return "", false, err
	}
	return s.identity, true, nil
}

// Hydration returns how many bytes of the snapshot's files are here and how many there are, less those of files the
// database needs no more. Both are 0 for a database opened by Open. It may be called by any goroutine.
func (d *DB) Hydration() (have, total int64) {
	if d.lazy == nil {
		return 0, 0
	}
	return d.lazy.progress()
}

// prepare makes a directory that is empty a copy of the snapshot with holes for its tables.
func (l *Lazy) prepare(fs *FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	for _, name := range names {
		if name != "LOCK" {
			return nil
		}
	}
	r, err := NewRestore(fs, dir)
	if err != nil {
		return err
	}
	if err = l.write(r); err == nil {
		err = r.Finish()
	}
	if err != nil {
		_ = r.Abort() // the next attempt removes what is left
	}
	return err
}

func (l *Lazy) write(r *Restore) error {
	s := &lazyState{identity: l.Identity, chunk: l.ChunkBytes}
	manifest, seen := false, map[string]bool{}
	for _, f := range l.Files {
		if seen[f.Name] {
			return fmt.Errorf("snapshot: %s is there twice", f.Name)
		}
		seen[f.Name] = true
		if f.Data == nil && f.Size > 0 {
			if !isTableName(f.Name) {
				return fmt.Errorf("snapshot: %s is no table and has no data", f.Name)
			}
			if err := checkName(f.Name); err != nil {
				return fmt.Errorf("snapshot: %w", err)
			}
			s.files = append(s.files, f)
			continue
		}
		w, err := r.Create(f.Name)
		if err != nil {
			return err
		}
		_, err = w.Write(f.Data)
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrStorage, err)
		}
		manifest = manifest || strings.HasPrefix(f.Name, "MANIFEST-")
	}
	if !manifest {
		return errors.New("snapshot: no manifest among the files") // Pebble would make an empty database
	}
	if err := r.fs.WriteFile(filepath.Join(r.temp, lazyStateName), s.encode()); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	return nil
}

// setLazy looks into the directory, which is locked.
func (d *DB) setLazy(l *Lazy) error {
	fs := &FS{fs: d.gate}
	s, err := readLazyState(fs, d.dir)
	if err != nil {
		return err
	}
	switch {
	case s == nil && l == nil:
		return nil
	case l == nil:
		return fmt.Errorf("%w: %s", store.ErrHydrating, s.identity)
	case s == nil:
		return fmt.Errorf("%w: the directory holds a complete database", os.ErrExist)
	case s.identity != l.Identity:
		return fmt.Errorf("%w: the directory holds a part of another snapshot, %s", os.ErrExist, s.identity)
	}
	d.lazy, err = newLazy(d, *l, s)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	return nil
}

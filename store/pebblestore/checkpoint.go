package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/store"
)

// CheckpointSuffix ends the name of every directory of a checkpoint, so that the leftovers of a crash can be told from
// databases.
const CheckpointSuffix = ".checkpoint"

// FormatVersion returns the version of the files this build writes. It reads files of this version and of older ones.
func FormatVersion() int { return int(formatVersion) }

// Checkpoint is a copy of a database as it was at one moment, in a directory of its own. Its table files are hard links
// where the file system has them, so it costs next to nothing until the database has compacted them away. It stays as it
// is when the database goes on or is closed. It is safe for concurrent use.
type Checkpoint struct {
	fs  *FS
	dir string
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	// Name is its name in the directory.
	Name string
	// Size is its length in bytes.
	Size int64
}

// Checkpoint flushes and makes a checkpoint of everything written before in dir, whose name must end in CheckpointSuffix
// and which must not exist. It counts as a write: the goroutine that calls Apply calls it. The error wraps
// store.ErrHydrating while files are missing that Hydration counts, and store.ErrStorage if the disk refuses; then nothing
// is left in dir unless the disk has refused that, too.
func (d *DB) Checkpoint(dir string) (*Checkpoint, error) {
	if err := d.enter(); err != nil {
		return nil, d.fail("checkpoint", err)
	}
	defer d.leave()
	if !strings.HasSuffix(filepath.Base(dir), CheckpointSuffix) {
		return nil, fmt.Errorf("pebblestore: checkpoint: the name of %s does not end in %s", dir, CheckpointSuffix)
	}
	if d.lazy != nil && !d.lazy.complete.Load() {
		return nil, fmt.Errorf("pebblestore: checkpoint: %w", store.ErrHydrating)
	}
	// Without a log, what is not flushed would be missing.
	if err := d.flush(); err != nil {
		return nil, err
	}
	err := makeDir(d.gate, filepath.Dir(dir)) // Pebble would make it for everybody to read
	if err == nil {
		err = d.link(dir)
	}
	if err != nil {
		if fatal := d.usable(); fatal != nil {
			err = fatal
		} else {
			err = fmt.Errorf("%w: %w", store.ErrStorage, err)
		}
		return nil, fmt.Errorf("pebblestore: checkpoint: %w", err)
	}
	// Not the gate: the checkpoint outlives the database.
	return &Checkpoint{fs: &FS{fs: d.gate.FS}, dir: dir}, nil
}

// link makes the checkpoint. Pebble panics when the disk refuses to sync a directory; here that directory is the new one,
// and nothing of the database is in doubt.
func (d *DB) link(dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			_ = d.gate.RemoveAll(dir)
		}
	}()
	return d.pebble.Checkpoint(dir)
}

// Files lists the files by name.
func (c *Checkpoint) Files() ([]CheckpointFile, error) {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	files := make([]CheckpointFile, 0, len(names))
	for _, name := range names {
		info, err := c.fs.fs.Stat(filepath.Join(c.dir, name))
		if err != nil {
			return nil, fmt.Errorf("pebblestore: checkpoint: %w: %w", store.ErrStorage, err)
		}
		files = append(files, CheckpointFile{Name: name, Size: info.Size()})
	}
	return files, nil
}

// Open opens one file. The caller closes it.
func (c *Checkpoint) Open(name string) (io.ReaderAt, io.Closer, error) {
	if err := checkName(name); err != nil {
		return nil, nil, fmt.Errorf("pebblestore: checkpoint: %w", err)
	}
	f, err := c.fs.fs.Open(filepath.Join(c.dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("pebblestore: checkpoint: %w: %w", store.ErrStorage, err)
	}
	return f, f, nil
}

// Remove removes the directory. A second Remove does nothing.
func (c *Checkpoint) Remove() error {
	if err := c.fs.fs.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("pebblestore: remove checkpoint: %w: %w", store.ErrStorage, err)
	}
	return nil
}

// RemoveCheckpoints removes the checkpoints and unfinished restores that lie in parent, left there by a process that has
// ended. No other database of this process may have a checkpoint or a restore there at the moment. A nil fs is that of the
// operating system; a parent that does not exist is no error.
func RemoveCheckpoints(fs *FS, parent string) error {
	if fs == nil {
		fs = OSFS()
	}
	names, err := fs.List(parent)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if strings.HasSuffix(name, CheckpointSuffix) || strings.HasSuffix(name, restoreSuffix) {
			errs = append(errs, fs.fs.RemoveAll(filepath.Join(parent, name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pebblestore: remove checkpoints: %w: %w", store.ErrStorage, err)
	}
	return nil
}

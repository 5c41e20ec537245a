package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/store"
)

// makeDir makes a directory and its parents, durably: Pebble syncs what is inside the directory and nothing above.
func makeDir(fs vfs.FS, dir string) error {
	var grown []string // parents that get a new entry
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := fs.Stat(at); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) || filepath.Dir(at) == at {
			return err
		}
		grown = append(grown, filepath.Dir(at))
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range grown {
		if err := syncDir(fs, parent); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the entries of a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Destroy removes the database in dir and everything else there. A nil fs is that of the operating system. It refuses
// with store.ErrLocked while the database is open; a directory that does not exist is no error.
func Destroy(fs *FS, dir string) error {
	err := withLock(fs, dir, func(fs *FS, dir string) error { return fs.fs.RemoveAll(dir) })
	if err != nil {
		return fmt.Errorf("pebblestore: destroy %s: %w", dir, err)
	}
	return nil
}

// SetAside renames the directory of a damaged database, so that a new one can take its place, and returns the new name:
// dir with ".damaged-" and the first free number behind it. It refuses with store.ErrLocked while the database is open.
func SetAside(fs *FS, dir string) (string, error) {
	var to string
	err := withLock(fs, dir, func(fs *FS, dir string) error {
		for n := 1; ; n++ {
			to = fmt.Sprintf("%s.damaged-%d", dir, n)
			if _, err := fs.fs.Stat(to); err == nil {
				continue
			} else if !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err := fs.fs.Rename(dir, to); err != nil {
				return err
			}
			return syncDir(fs.fs, filepath.Dir(dir))
		}
	})
	if err != nil {
		return "", fmt.Errorf("pebblestore: set aside %s: %w", dir, err)
	}
	return to, nil
}

func withLock(fs *FS, dir string, fn func(fs *FS, dir string) error) error {
	if fs == nil {
		fs = OSFS()
	}
	if _, err := fs.fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	dir, err := fs.canonical(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	lock, err := pebble.LockDirectory(dir, fs.fs)
	if err != nil {
		return classifyLock(err)
	}
	err = fn(fs, dir)
	if closeErr := lock.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	return nil
}

package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// FS is a file system databases live in.
type FS struct {
	fs  vfs.FS
	mem *vfs.MemFS // nil if it is not a crashable one in memory
}

// OSFS returns the file system of the operating system.
func OSFS() *FS { return &FS{fs: vfs.Default} }

// NewMemFS returns an empty file system in memory, for tests. It knows which data were synced.
func NewMemFS() *FS { return memFS(vfs.NewCrashableMem()) }

func memFS(m *vfs.MemFS) *FS { return &FS{fs: m, mem: m} }

// CrashClone returns a copy of a file system of NewMemFS as it may look after the machine has lost power: everything
// that was synced, and of everything else each block with the given probability in percent. No lock is held in it.
// Databases may be open meanwhile; they go on with f.
func (f *FS) CrashClone(unsyncedPercent int, rng *rand.Rand) (*FS, error) {
	if f.mem == nil {
		return nil, fmt.Errorf("pebblestore: crash clone: not a file system of NewMemFS")
	}
	return memFS(f.mem.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: unsyncedPercent,
		RNG:                 rng,
	})), nil
}

// Op is one operation on a file system.
type Op struct {
	// Path is the file; of two, the source.
	Path string
	// Write says whether it changes the disk.
	Write bool
	// Sync says whether it makes changes durable.
	Sync bool
}

// Inject returns f with a function that is called before every operation, by any goroutine. The operation fails with the
// error it returns, or goes on if that is nil. It is for tests; syscall.ENOSPC makes a full disk.
func (f *FS) Inject(before func(Op) error) *FS {
	fault := errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		return before(Op{Path: op.Path, Write: op.Kind.ReadOrWrite() == errorfs.OpIsWrite, Sync: sync})
	})
	return &FS{fs: errorfs.Wrap(f.fs, fault), mem: f.mem}
}

// canonical returns the one name of a directory that exists. Locks go by name, and the system's own locks do not keep
// out the process that holds them.
func (f *FS) canonical(dir string) (string, error) {
	if vfs.Root(f.fs) != vfs.Default {
		return filepath.Clean(dir), nil
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// ReadFile returns the content of a file.
func (f *FS) ReadFile(path string) ([]byte, error) {
	file, err := f.fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pebblestore: read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("pebblestore: read: %w", err)
	}
	b := make([]byte, info.Size())
	if _, err := file.ReadAt(b, 0); err != nil && info.Size() > 0 {
		return nil, fmt.Errorf("pebblestore: read: %w", err)
	}
	return b, nil
}

// WriteFile replaces a file and syncs it.
func (f *FS) WriteFile(path string, b []byte) error {
	file, err := f.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("pebblestore: write: %w", err)
	}
	// Pebble's file systems may change what they are given to write.
	if _, err = file.Write(append([]byte{}, b...)); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("pebblestore: write: %w", err)
	}
	return nil
}

// List returns the names in a directory, none if it does not exist.
func (f *FS) List(dir string) ([]string, error) {
	names, err := f.fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("pebblestore: list: %w", err)
	}
	return names, nil
}

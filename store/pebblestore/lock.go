package pebblestore

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/tidemark/tidemark/store"
)

// LockDir makes a directory, with mode 0700, and locks it for this holder by a file LOCK in it. The error wraps
// store.ErrLocked if another one, in this process or elsewhere, holds it. The release is idempotent.
func (f *FS) LockDir(dir string) (release func(), err error) {
	if err := f.fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("pebblestore: lock: %w", err)
	}
	var held io.Closer
	if held, err = f.fs.Lock(filepath.Join(dir, "LOCK")); err != nil {
		if os.IsPermission(err) {
			return nil, fmt.Errorf("pebblestore: lock %s: %w", dir, err)
		}
		return nil, fmt.Errorf("pebblestore: lock %s: %w: %w", dir, store.ErrLocked, err)
	}
	return sync.OnceFunc(func() { held.Close() }), nil
}

package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark/tidemark/store"
)

// classify gives an error of Pebble its sentinel. A table file that is missing is damage like any other; everything
// that is not known to be damage is taken for a failure of the disk, which destroys nothing.
func classify(err error) error {
	switch {
	case errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrStorage):
		return err
	case pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", store.ErrStorage, err)
}

// classifyOpen is classify for errors of opening, where Pebble reports damage it meets in its own files in many ways.
// Only what the operating system has refused is a failure of the disk.
func classifyOpen(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
}

// classifyLock tells a lock somebody holds from a disk that refuses to make one.
func classifyLock(err error) error {
	if errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "held by current process") {
		return fmt.Errorf("%w: %w", store.ErrLocked, err)
	}
	return fmt.Errorf("%w: %w", store.ErrStorage, err)
}

// hopeless tells failures of flushes and compactions that repeating does not mend from those that pass, like a full disk.
// Pebble itself repeats all of them, and a failing read without any pause.
func hopeless(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EROFS)
}

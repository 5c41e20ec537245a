package objects

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrNotFound reports an object that is not there. Test with errors.Is.
var ErrNotFound = errors.New("object not found")

// Info describes one object of a listing.
type Info struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // when it was put last, by the clock of the store
}

// Store keeps objects by key; CheckKey says which keys there are, all others are refused with ErrKey. No key may continue
// another one behind a slash: what is a file in one store would be a directory too. Package objectstest holds what every
// implementation must do.
type Store interface {
	// Put stores an object, whole or not at all: a reader sees what was there before or the new bytes. After a nil error
	// the object holds exactly the bytes of body, whatever it held before, and counts as modified now; collection of
	// garbage relies on both. Putting the same bytes again is harmless. After an error the object may be there or not.
	// The body is read from its start, possibly several times, wherever it has been read to; it is closed by the caller.
	Put(ctx context.Context, key string, body *io.SectionReader) error

	// Get reads length bytes from offset, fewer where the object ends earlier; a negative length means up to its end. The
	// context ends the reading too. A reader whose source ends before it has returned what there is returns
	// io.ErrUnexpectedEOF. Errors: ErrNotFound.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// List calls fn for every object whose key begins with the prefix, ascending by the bytes of the key, and stops with
	// the error fn returns. The prefix may end anywhere in a key. Objects put or deleted meanwhile may be missing or not,
	// and fn may delete what it is shown.
	List(ctx context.Context, prefix string, fn func(Info) error) error

	// Delete removes objects. One that does not exist is no error. After an error some may be gone.
	Delete(ctx context.Context, keys ...string) error
}

package store

import "errors"

var (
	// ErrClosed is returned by every operation on a closed DB.
	ErrClosed = errors.New("store: closed")
	// ErrCorrupt marks a DB whose content is damaged: it must be set aside and restored.
	ErrCorrupt = errors.New("store: corrupt")
	// ErrStorage marks an operation the disk has refused (full, read-only, input/output error). What was committed
	// before is intact.
	ErrStorage = errors.New("store: storage failure")
	// ErrHydrating is returned by what needs all files of a DB while some of them are still in the snapshot it was opened
	// from.
	ErrHydrating = errors.New("store: not all files are here yet")
	// ErrLocked is returned when another DB, in this process or another one, has the directory open.
	ErrLocked = errors.New("store: locked")
)

// DB is the ordered byte store of one task. Keys compare bytewise and are not empty; an empty value is legal.
//
// One goroutine calls it, with one exception: while a goroutine is inside Apply, Load or Flush, another one may call
// Get and Scan and use iterators. Two writers at a time are not allowed.
type DB interface {
	// Get appends the value of key to dst. ok is false, and dst comes back unchanged, if there is none.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Scan iterates over the rows with lo <= key < hi as they are now; a nil hi means up to the last row. Later writes
	// do not show. The caller closes the iterator.
	Scan(lo, hi []byte) (Iterator, error)
	// Apply makes the operations of b visible, all or none, in their order. They are durable after the next Flush. A DB
	// that is opened again after a crash is an exact prefix of the sequence of applied batches and loaded runs.
	Apply(b *Batch) error
	// Load writes one run, all or nothing. It is durable, with everything applied before it, when Load returns.
	Load(r Run) error
	// Flush makes all applied batches durable.
	Flush() error
	// Close releases the DB. It does not flush. Iterators must be closed before. A second Close does nothing.
	Close() error
}

// Iterator visits rows in ascending order of their keys. It starts before the first row.
type Iterator interface {
	// Next moves to the next row and reports whether there is one.
	Next() bool
	// Key returns the key of the row, valid until the next call of Next or Close.
	Key() []byte
	// Value returns the value of the row, valid until the next call of Next or Close.
	Value() []byte
	// Err returns the error that ended the iteration, if one did.
	Err() error
	Close() error
}

// Run is a sequence of sets, deletes and range deletes with distinct, ascending keys. No key lies inside a range that was
// deleted before it in the run.
type Run interface {
	// Next moves to the next operation and reports whether there is one.
	Next() bool
	// Key returns the key of the operation, valid until the next call of Next.
	Key() []byte
	// Value returns the value to set, valid until the next call of Next; nil deletes the row. A DB must not take an
	// empty value for nil.
	Value() []byte
	// End returns the end of a range delete, which removes the rows with Key() <= key < End(), valid until the next call
	// of Next; nil for a set or a delete.
	End() []byte
}

package snapshot

import (
	"context"
	"io"
)

// Copy is a checkpoint that takes room on the disk of its database.
type Copy interface {
	Checkpoint
	// Remove gives the room back.
	Remove() error
}

// Filling is a database that is being made of the files of a snapshot.
type Filling interface {
	Target
	// Finish puts it in its place, Abort removes what was written.
	Finish() error
	Abort() error
}

// Source is a snapshot that a database is opened from before its files are here.
type Source struct {
	// Key is that of the manifest.
	Key      string
	Manifest *Manifest
	// Fetch opens a part of a file. objects.ErrNotFound is final, after any other error it is called again.
	Fetch func(ctx context.Context, f File, offset, length int64) (io.ReadCloser, error)
	// Hydrated is called once by another goroutine: with nil when everything is here, or with why it cannot be had.
	Hydrated func(error)
}

package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Sink is a file that is being written.
type Sink interface {
	io.Writer
	// Sync makes durable what was written.
	Sync() error
	// Close ends the writing.
	Close() error
}

// Target is where a snapshot is restored to. Nothing in it may be used before Download has returned nil.
type Target interface {
	// Create makes a file. It is called by several goroutines, once per name; names are those of plain files.
	Create(name string) (Sink, error)
}

// TargetFunc is a function that is a Target.
type TargetFunc func(name string) (Sink, error)

// Create implements Target.
func (f TargetFunc) Create(name string) (Sink, error) { return f(name) }

// Download writes all files of a snapshot to a target, each of them verified by size and SHA-256, and synced. Errors:
// ErrDamaged, objects.ErrNotFound, else those of store and target; the target then holds rubbish.
func Download(ctx context.Context, store objects.Store, m *Manifest, dst Target, o Options) error {
	if o.Parallel <= 0 {
		o.Parallel = downloadParallel
	}
	turn, number := o.Queue, 0
	if turn != nil {
		// As many again wait, so that a turn that ends finds the next file of the same download before one of a later one.
		o.Parallel, number = 2*turn.files, turn.join()
	}
	err := parallel(ctx, o.Parallel, len(m.Files), func(ctx context.Context, i int) error {
		if turn != nil {
			if err := turn.acquire(ctx, number); err != nil {
				return err
			}
			defer turn.release()
		}
		if err := download(ctx, store, m, m.Files[i], dst); err != nil {
			return fmt.Errorf("%s: %w", m.Files[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("snapshot: download %v at commit %d: %w", m.Task(), m.Seq, err)
	}
	return nil
}

func download(ctx context.Context, store objects.Store, m *Manifest, f File, dst Target) error {
	out, err := dst.Create(f.Name)
	if err != nil {
		return err
	}
	if f.Data != nil {
		_, err = out.Write(bytes.Clone(f.Data)) // file systems of databases may change what they are given
	} else {
		err = verified(ctx, store, m.Object(f), f, out)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// verified copies an object and refuses all but the bytes the manifest promises.
func verified(ctx context.Context, store objects.Store, key string, f File, out io.Writer) error {
	r, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	// One byte more than there should be shows an object that is too long.
	n, err := copyContext(ctx, io.MultiWriter(h, out), io.LimitReader(r, f.Size+1), f.Size)
	if err != nil {
		return err
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	if n != f.Size || sum != f.Sum {
		return fmt.Errorf("%w: %d bytes with sha256 %x, want %d with %x", ErrDamaged, n, sum, f.Size, f.Sum)
	}
	return nil
}

// Verify reads all files of a snapshot and writes nothing. Errors as Download.
func Verify(ctx context.Context, store objects.Store, m *Manifest, o Options) error {
	return Download(ctx, store, m, TargetFunc(func(string) (Sink, error) { return nowhere{}, nil }), o)
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Sync() error                 { return nil }
func (nowhere) Close() error                { return nil }

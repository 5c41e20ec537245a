package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Dir keeps objects as files below a directory, on a local disk or one that several machines share. The path of a file
// below the directory is the key of its object. Files are readable by their owner only.
//
// Half an object is never visible: it is written to a file of its own below tempDir, synced, and given its name. What a
// crash leaves there is removed when it is a day old.
type Dir struct {
	root string

	mu     sync.Mutex
	synced map[string]bool // directories that are durable with all above them; no one removes directories
}

// tempDir holds files that are being written. Its name is not part of any key.
const tempDir = "~tmp"

// tempAge is how old a file in tempDir must be to be nobody's.
const tempAge = 24 * time.Hour

// NewDir returns a store in a directory, which is made if it does not exist. One that can only be read is read: every Put
// says what is wrong.
func NewDir(root string) (*Dir, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("objects: open directory: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("objects: open directory: %w", err)
	}
	d := &Dir{root: root, synced: make(map[string]bool)}
	_ = d.sweep() // what stays takes room and nothing else
	return d, nil
}

// OpenDir returns a store in a directory that exists, and changes nothing there by itself: for whoever only looks. The error
// wraps fs.ErrNotExist if there is no directory.
func OpenDir(root string) (*Dir, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("objects: open directory: %w", err)
	}
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: root, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, fmt.Errorf("objects: open directory: %w", err)
	}
	return &Dir{root: root, synced: make(map[string]bool)}, nil
}

// sweep removes what crashed writers have left. The time is that of the file system, which may be another machine's.
func (d *Dir) sweep() error {
	probe, err := d.temp()
	if err != nil {
		return err
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	now, err := probe.Stat()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(d.root, tempDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		if now.ModTime().Sub(info.ModTime()) > tempAge {
			if err := os.Remove(filepath.Join(d.root, tempDir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// temp makes a file that nobody else has.
func (d *Dir) temp() (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(d.root, tempDir), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Join(d.root, tempDir), "put-") // O_EXCL, mode 0600
}

func (d *Dir) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// Put implements Store.
func (d *Dir) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := d.put(ctx, key, body); err != nil {
		return fmt.Errorf("objects: put %s: %w", key, err)
	}
	return nil
}

func (d *Dir) put(ctx context.Context, key string, body *io.SectionReader) error {
	f, err := d.temp()
	if err != nil {
		return err
	}
	err = copyBody(ctx, f, body)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.publish(f.Name(), key)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left is swept one day
	}
	return err
}

// publish gives a file the name of a key, durably.
func (d *Dir) publish(temp, key string) error {
	parent := path.Dir(key)
	if err := os.MkdirAll(d.path(parent), 0o700); err != nil {
		return err
	}
	if err := os.Rename(temp, d.path(key)); err != nil {
		return err
	}
	if err := syncDir(d.path(parent)); err != nil {
		return err
	}
	return d.syncAbove(parent)
}

// syncAbove makes a directory itself durable: it is an entry of the one above it.
func (d *Dir) syncAbove(dir string) error {
	d.mu.Lock()
	known := d.synced[dir]
	d.mu.Unlock()
	if known {
		return nil
	}
	for at := dir; at != "."; at = path.Dir(at) {
		if err := syncDir(d.path(path.Dir(at))); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced[dir] = true
	return nil
}

func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get implements Store.
func (d *Dir) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(key, offset); err != nil {
		return nil, err
	}
	r, err := d.open(ctx, key, offset, length)
	if isNotFound(err) {
		return nil, fmt.Errorf("objects: get %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("objects: get %s: %w", key, err)
	}
	return r, nil
}

func (d *Dir) open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist // the keys below it have more parts
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	offset = min(offset, info.Size())
	if length < 0 || length > info.Size()-offset {
		length = info.Size() - offset
	}
	return &dirReader{ctx: ctx, file: f, at: offset, left: length}, nil
}

// isNotFound reports the errors of opening a path that mean: no such object. A part of the path may be an object itself.
func isNotFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// dirReader reads a range of a file.
type dirReader struct {
	ctx      context.Context
	file     *os.File
	at, left int64
}

func (r *dirReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.file.ReadAt(p[:min(int64(len(p)), r.left)], r.at)
	r.at += int64(n)
	r.left -= int64(n)
	if err == io.EOF {
		err = nil
		if n == 0 && len(p) > 0 {
			err = io.ErrUnexpectedEOF // somebody cut the file
		}
	}
	return n, err
}

func (r *dirReader) Close() error { return r.file.Close() }

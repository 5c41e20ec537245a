package pebblestore

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble sees a directory in which nothing is missing. These are the methods of its file system that tell it so; all
// others are those of the gate below.

// remote returns the file of that path if it is not complete.
func (l *lazy) remote(path string) *remote {
	if l.PathDir(path) != l.dir {
		return nil
	}
	r := l.files[l.PathBase(path)]
	if r == nil || r.done.Load() {
		return nil
	}
	return r
}

// Open implements vfs.FS.
func (l *lazy) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	r := l.remote(name)
	if r == nil {
		return l.FS.Open(name, opts...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.gone {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &handle{r: r, sequential: slices.Contains(opts, vfs.SequentialReadsOption)}, nil
}

// Stat implements vfs.FS.
func (l *lazy) Stat(name string) (vfs.FileInfo, error) {
	r := l.remote(name)
	if r == nil {
		return l.FS.Stat(name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.gone {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return remoteInfo{r}, nil
}

// List implements vfs.FS.
func (l *lazy) List(dir string) ([]string, error) {
	names, err := l.FS.List(dir)
	if err != nil || l.PathJoin(dir) != l.dir {
		return names, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	for _, r := range l.order {
		if !r.gone && !seen[r.Name] {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// Remove implements vfs.FS. It ends what is in progress for a file that is not complete.
func (l *lazy) Remove(name string) error {
	r := l.files[l.PathBase(name)]
	if r == nil || l.PathDir(name) != l.dir {
		return l.FS.Remove(name)
	}
	l.mu.Lock()
	path := r.part
	if r.done.Load() {
		path = r.path
	}
	gone := r.gone
	r.gone = true
	r.cancel()
	l.changed.Broadcast()
	l.mu.Unlock()
	err := l.FS.Remove(path)
	if path == r.part && isNotExist(err) && !gone {
		return nil
	}
	return err
}

// Link implements vfs.FS. There is no link to a file that is not here.
func (l *lazy) Link(oldname, newname string) error {
	if l.remote(oldname) != nil {
		return &fs.PathError{Op: "link", Path: oldname, Err: syscall.EXDEV}
	}
	return l.FS.Link(oldname, newname)
}

// Unwrap implements vfs.FS.
func (l *lazy) Unwrap() vfs.FS { return l.FS }

// handle is an open file that is not complete, or was not when it was opened.
type handle struct {
	r          *remote
	sequential bool

	mu   sync.Mutex
	file vfs.File // from acquire; nil before the first read of the part
	pos  int64    // of Read
}

// part opens the part when a chunk is there.
func (h *handle) part() (vfs.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		h.r.l.mu.Lock()
		defer h.r.l.mu.Unlock()
		f, err := h.r.acquire()
		if err != nil {
			return nil, err
		}
		h.file = f
	}
	return h.file, nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	return h.r.readAt(h.part, p, off, h.sequential)
}

func (h *handle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.pos)
	h.pos += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		h.r.l.mu.Lock()
		h.r.release()
		h.r.l.mu.Unlock()
		h.file = nil
	}
	return nil
}

func (h *handle) Stat() (vfs.FileInfo, error)           { return remoteInfo{h.r}, nil }
func (h *handle) Fd() uintptr                           { return vfs.InvalidFd }
func (h *handle) Prefetch(int64, int64) error           { return nil }
func (h *handle) Write([]byte) (int, error)             { return 0, h.readOnly() }
func (h *handle) WriteAt([]byte, int64) (int, error)    { return 0, h.readOnly() }
func (h *handle) Preallocate(int64, int64) error        { return h.readOnly() }
func (h *handle) Sync() error                           { return nil }
func (h *handle) SyncData() error                       { return nil }
func (h *handle) SyncTo(int64) (fullSync bool, _ error) { return false, nil }

func (h *handle) readOnly() error { return fmt.Errorf("write %s: %w", h.r.path, fs.ErrPermission) }

// remoteInfo describes the file as it will be.
type remoteInfo struct{ r *remote }

func (i remoteInfo) Name() string           { return i.r.Name }
func (i remoteInfo) Size() int64            { return i.r.Size }
func (i remoteInfo) Mode() fs.FileMode      { return 0o600 }
func (i remoteInfo) ModTime() time.Time     { return time.Time{} }
func (i remoteInfo) IsDir() bool            { return false }
func (i remoteInfo) Sys() any               { return nil }
func (i remoteInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

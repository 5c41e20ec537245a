package pebblestore

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/store"
)

// saveBytes is how much is fetched between two saves of what is here. A crash loses no more than that.
const saveBytes = 64 << 20

// finish gives a file that is full its name, if it is the right one. It must be durable before.
func (l *lazy) finish(r *remote) (err error) {
	defer func() {
		l.mu.Lock()
		r.finishing = false
		l.changed.Broadcast()
		l.mu.Unlock()
	}()
	l.mu.Lock()
	f, err := r.acquire()
	l.mu.Unlock()
	if err != nil {
		if isNotExist(err) {
			return nil // gone
		}
		return err
	}
	if err = r.sync(f); err == nil {
		err = r.compare(f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = l.d.gate.check()
	}
	if err == nil && !r.gone && r.missing == 0 {
		if err = l.raw.Rename(r.part, r.path); err == nil {
			r.done.Store(true)
		}
	}
	r.release()
	return err
}

func (r *remote) compare(f io.ReaderAt) error {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, r.Size), make([]byte, 1<<20)); err != nil {
		return err
	}
	if [sha256.Size]byte(h.Sum(nil)) != r.Sum {
		return fmt.Errorf("%w: %s does not have its sum", store.ErrCorrupt, r.Name)
	}
	return nil
}

// sync makes the part durable. If that fails, what it should have made durable may be lost, and a second sync would not
// say so: it counts as missing.
func (r *remote) sync(f vfs.File) error {
	r.syncing.Lock()
	defer r.syncing.Unlock()
	err := f.Sync()
	if err == nil {
		return nil
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	for i := range r.n {
		if r.have.has(i) && !r.saved.has(i) {
			r.have.clear(i)
			r.missing++
		}
	}
	return err
}

func (l *lazy) wantSave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved >= saveBytes
}

// save makes durable what is here, and then that it is here. One at a time does it.
func (l *lazy) save() error {
	if !l.saving.TryLock() {
		return nil
	}
	defer l.saving.Unlock()
	l.mu.Lock()
	l.unsaved = 0
	var dirty, files []*remote
	for _, r := range l.order {
		if r.dirty && !r.gone && !r.done.Load() {
			dirty = append(dirty, r)
		}
	}
	l.mu.Unlock()
	for _, r := range dirty {
		if err := l.saveFile(r); err != nil {
			return err
		}
	}
	l.mu.Lock()
	for _, r := range l.order {
		if !r.gone && !r.done.Load() {
			files = append(files, r)
		}
	}
	b := encodeChunks(files)
	l.mu.Unlock()
	path := filepath.Join(l.dir, lazyChunksName)
	if err := (&FS{fs: l.FS}).WriteFile(path+".new", b); err != nil {
		return err
	}
	if err := l.FS.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(l.FS, l.dir)
}

func (l *lazy) saveFile(r *remote) error {
	l.mu.Lock()
	f, err := r.acquire()
	have := slices.Clone(r.have)
	l.mu.Unlock()
	if isNotExist(err) {
		return nil // gone
	}
	if err != nil {
		return err
	}
	err = r.sync(f)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.release()
	if err == nil {
		r.saved = have
		r.dirty = string(have) != string(r.have)
	}
	return err
}

// end makes the directory that of an ordinary database.
func (l *lazy) end() error {
	if err := syncDir(l.FS, l.dir); err != nil { // the new names
		return err
	}
	names, err := l.FS.List(l.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, partPrefix) || strings.HasPrefix(name, lazyChunksName) {
			if err := l.FS.Remove(l.PathJoin(l.dir, name)); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	if err := l.FS.Remove(l.PathJoin(l.dir, lazyStateName)); err != nil && !isNotExist(err) {
		return err
	}
	if err := syncDir(l.FS, l.dir); err != nil {
		return err
	}
	l.complete.Store(true)
	return nil
}

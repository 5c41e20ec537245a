package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// List implements Store.
func (d *Dir) List(ctx context.Context, prefix string, fn func(Info) error) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	w := dirWalk{ctx: ctx, dir: d, prefix: prefix, fn: fn}
	err := w.walk(path.Dir(prefix)) // "." for a prefix without a slash
	if err != nil && w.own {
		return fmt.Errorf("objects: list %q: %w", prefix, err)
	}
	return err
}

// dirWalk is one listing.
type dirWalk struct {
	ctx    context.Context
	dir    *Dir
	prefix string
	fn     func(Info) error
	own    bool // the error comes from the walk, not from fn
}

// walk lists what is below one directory. Its entries are sorted as the keys are, in which a directory's name is followed by
// a slash: "a.b" comes before "a/b" and after "a" alone.
func (w *dirWalk) walk(dir string) error {
	entries, err := os.ReadDir(w.dir.path(dir))
	if err != nil {
		w.own = !isNotFound(err) // none, or deleted meanwhile
		if w.own {
			return err
		}
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			w.own = true
			return err
		}
		key := path.Join(dir, e.Name())
		if !validPart(e.Name()) || !w.leads(key, e.IsDir()) {
			continue
		}
		if err := w.entry(key, e); err != nil {
			return err
		}
	}
	return nil
}

func (w *dirWalk) entry(key string, e fs.DirEntry) error {
	if e.IsDir() {
		return w.walk(key)
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.own = true
		return err
	}
	return w.fn(Info{key, info.Size(), info.ModTime()})
}

// leads says whether an entry is, or may hold, something that begins with the prefix.
func (w *dirWalk) leads(key string, isDir bool) bool {
	if strings.HasPrefix(key, w.prefix) {
		return true
	}
	return isDir && strings.HasPrefix(w.prefix, key+"/")
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// Delete implements Store. Directories stay when they are empty: somebody may be about to put something into them.
func (d *Dir) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("objects: delete: %w", err)
		}
		if err := d.remove(key); err != nil {
			return fmt.Errorf("objects: delete %s: %w", key, err)
		}
	}
	return nil
}

func (d *Dir) remove(key string) error {
	info, err := os.Lstat(d.path(key))
	if isNotFound(err) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(d.path(key)); err != nil && !isNotFound(err) {
		return err
	}
	return nil
}

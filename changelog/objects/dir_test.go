package objects_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// What is in the directory is its owner's business only.
func TestDirModes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "made", "too")
	d, err := objects.NewDir(root)
	check(t, err)
	check(t, d.Put(t.Context(), "app/sub/k", objects.Bytes([]byte("v"))))
	check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	}))
	b, err := os.ReadFile(filepath.Join(root, "app", "sub", "k"))
	if err != nil || string(b) != "v" {
		t.Errorf("the object is not the file of its key: %q, %v", b, err)
	}
}

// Who only looks changes nothing, and is told that there is no directory.
func TestOpenDir(t *testing.T) {
	root := t.TempDir()
	d, err := objects.NewDir(root)
	check(t, err)
	check(t, d.Put(t.Context(), "k", objects.Bytes([]byte("v"))))
	check(t, os.RemoveAll(filepath.Join(root, "~tmp")))
	o, err := objects.OpenDir(root)
	check(t, err)
	n := 0
	check(t, o.List(t.Context(), "", func(objects.Info) error { n++; return nil }))
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 || n != 1 {
		t.Errorf("%v, %v, %d objects", entries, err, n)
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "k": syscall.ENOTDIR} {
		if _, err := objects.OpenDir(filepath.Join(root, name)); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was made")
	}
}

// What a crash in the middle of a Put has left is never listed, and goes when it is old; what another process is writing
// stays.
func TestDirLeftovers(t *testing.T) {
	root := t.TempDir()
	_, err := objects.NewDir(root)
	check(t, err)
	old, fresh := filepath.Join(root, "~tmp", "put-1"), filepath.Join(root, "~tmp", "put-2")
	for _, name := range []string{old, fresh} {
		check(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	check(t, os.Chtimes(old, yesterday, yesterday))
	d, err := objects.NewDir(root)
	check(t, err)
	check(t, d.List(t.Context(), "", func(i objects.Info) error {
		t.Errorf("listed %q", i.Key)
		return nil
	}))
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the fresh one: %v", err)
	}
}

// Two processes share a directory.
func TestDirShared(t *testing.T) {
	root := t.TempDir()
	a, err := objects.NewDir(root)
	check(t, err)
	b, err := objects.NewDir(root)
	check(t, err)
	check(t, a.Put(t.Context(), "d/k", objects.Bytes([]byte("of a"))))
	if got, err := read(t.Context(), b, "d/k"); err != nil || got != "of a" {
		t.Errorf("%q, %v", got, err)
	}
	check(t, b.Put(t.Context(), "d/k", objects.Bytes([]byte("of b"))))
	check(t, b.Delete(t.Context(), "d/k"))
	if _, err := read(t.Context(), a, "d/k"); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
}

func TestDirWithoutDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	if _, err := objects.NewDir(file); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// A directory that cannot be written to is read, and says at a Put that it is not.
func TestDirReadOnly(t *testing.T) {
	root := t.TempDir()
	d, err := objects.NewDir(root)
	check(t, err)
	check(t, d.Put(t.Context(), "d/k", objects.Bytes([]byte("v"))))
	// Permissions do not hold the superuser back; a file in the place of a directory does.
	check(t, os.RemoveAll(filepath.Join(root, "~tmp")))
	check(t, os.WriteFile(filepath.Join(root, "~tmp"), nil, 0o600))
	d, err = objects.NewDir(root)
	check(t, err)
	if got, err := read(t.Context(), d, "d/k"); err != nil || got != "v" {
		t.Errorf("%q, %v", got, err)
	}
	if err := d.Put(t.Context(), "d/k", objects.Bytes([]byte("w"))); err == nil {
		t.Error("put")
	}
	if got, err := read(t.Context(), d, "d/k"); err != nil || got != "v" {
		t.Errorf("%q, %v", got, err)
	}
}

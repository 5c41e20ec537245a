package pebblestore

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark/tidemark/store"
)

func TestLocked(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	_, err := Open("/state//app/task/", Options{FS: fs})
	wantErr(t, "second open", err, store.ErrLocked)
	wantErr(t, "destroy", Destroy(fs, dir), store.ErrLocked)
	_, err = SetAside(fs, dir)
	wantErr(t, "set aside", err, store.ErrLocked)
	apply(t, db, "a", "1")
	mustClose(t, db)
	mustClose(t, mustOpen(t, dir, Options{FS: fs}))
}

// A second name of the directory is not a second directory.
func TestLockedByAnotherName(t *testing.T) {
	base := t.TempDir()
	db := mustOpen(t, base+"/task", Options{})
	defer mustClose(t, db)
	if err := os.Symlink(base+"/task", base+"/link"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(base+"/link", Options{})
	wantErr(t, "open through a link", err, store.ErrLocked)
	t.Chdir(base)
	_, err = Open("task", Options{})
	wantErr(t, "open by a relative name", err, store.ErrLocked)
}

// The lock keeps other processes out. This test runs itself as one.
func TestLockedByAnotherProcess(t *testing.T) {
	if dir := os.Getenv("PEBBLESTORE_TEST_DIR"); dir != "" {
		_, err := Open(dir, Options{})
		wantErr(t, "open in the second process", err, store.ErrLocked)
		return
	}
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	defer mustClose(t, db)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockedByAnotherProcess$")
	cmd.Env = append(os.Environ(), "PEBBLESTORE_TEST_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDestroyAndSetAside(t *testing.T) {
	fs := NewMemFS()
	for n, want := range []string{dir + ".damaged-1", dir + ".damaged-2"} {
		db := mustOpen(t, dir, Options{FS: fs})
		load(t, db, rows(10+n, "v"))
		mustClose(t, db)
		to, err := SetAside(fs, dir)
		if err != nil || to != want {
			t.Errorf("set aside to %q: %v", to, err)
		}
		db = mustOpen(t, to, Options{FS: fs})
		wantRow(t, db, "key00009", "v")
		mustClose(t, db)
		db = mustOpen(t, dir, Options{FS: fs})
		wantRow(t, db, "key00009", "")
		load(t, db, rows(1, "v"))
		mustClose(t, db)
		if err := Destroy(fs, dir); err != nil {
			t.Error(err)
		}
		if names, err := fs.List(dir); err != nil || len(names) > 0 {
			t.Errorf("left after destroy: %v %v", names, err)
		}
	}
	if err := Destroy(fs, "/nothing"); err != nil {
		t.Error(err)
	}
	if to, err := SetAside(fs, "/nothing"); err != nil || to != "" {
		t.Error(to, err)
	}
}

// Files of a run that a crash has cut off are removed, and nothing else is.
func TestOpenRemovesPartialRuns(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	load(t, db, rows(3, "v"))
	mustClose(t, db)
	for _, name := range []string{runPrefix + "000001", "notes"} {
		if err := fs.WriteFile(filepath.Join(dir, name), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	db = mustOpen(t, dir, Options{FS: fs})
	defer mustClose(t, db)
	wantRow(t, db, "key00002", "v")
	if _, err := fs.ReadFile(filepath.Join(dir, runPrefix+"000001")); err == nil {
		t.Error("the file of the run is still there")
	}
	if _, err := fs.ReadFile(filepath.Join(dir, "notes")); err != nil {
		t.Error(err)
	}
}

package pebblestore

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/tidemark/tidemark/store"
)

// A restore replaces the database that is there, unless that is open, and leaves nothing else.
func TestRestore(t *testing.T) {
	for name, fs := range map[string]*FS{"memory": NewMemFS(), "disk": OSFS()} {
		t.Run(name, func(t *testing.T) {
			dir := dir
			if name == "disk" {
				dir = t.TempDir() + "/app/task"
			}
			db := mustOpen(t, dir, Options{FS: fs})
			load(t, db, rows(10, "v"))
			cp := mustCheckpoint(t, db, filepath.Dir(dir)+"/1"+CheckpointSuffix)
			load(t, db, rows(10, "w"))
			r, err := NewRestore(fs, dir)
			if err != nil {
				t.Fatal(err)
			}
			wantErr(t, "finish", r.Finish(), store.ErrLocked)
			wantRow(t, db, "key00009", "w")
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			mustClose(t, db)
			download(t, cp, fs, dir)
			db = mustOpen(t, dir, Options{FS: fs})
			wantRow(t, db, "key00009", "v")
			mustClose(t, db)
			if err := cp.Remove(); err != nil {
				t.Error(err)
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			if names, _ := fs.List(filepath.Dir(dir)); !slices.Equal(names, []string{"task"}) {
				t.Errorf("left: %v", names)
			}
		})
	}
}

func TestRestoreNames(t *testing.T) {
	r, err := NewRestore(NewMemFS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "LOCK", `a\b`, ownPrefix + "lazy", "a b", "a\nb"} {
		if _, err := r.Create(name); err == nil {
			t.Errorf("created %q", name)
		}
	}
}

// Whatever moment a restore is cut off at, the directory holds the old database, the new one or none.
func TestRestoreInterrupted(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	seen := map[string]bool{}
	for after := 0; ; after++ {
		base := NewMemFS()
		db := mustOpen(t, dir, Options{FS: base})
		load(t, db, rows(10, "new"))
		cp := mustCheckpoint(t, db, checkpointDir)
		load(t, db, rows(10, "old"))
		mustClose(t, db)
		files, err := cp.Files()
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		n := 0
		var crashed *FS
		fs := base.Inject(func(op Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !op.Write {
				return nil
			}
			if n++; n > after && crashed == nil {
				var err error
				if crashed, err = base.CrashClone(rng.IntN(101), rng); err != nil {
					t.Error(err)
				}
			}
			if crashed != nil {
				return syscall.EIO
			}
			return nil
		})
		failed := func() error {
			r, err := NewRestore(fs, dir)
			if err != nil {
				return err
			}
			for _, f := range files {
				w, err := r.Create(f.Name)
				if err != nil {
					return err
				}
				_, err = w.Write(content(t, cp, f))
				if closeErr := w.Close(); err == nil {
					err = closeErr
				}
				if err != nil {
					return err
				}
			}
			return r.Finish()
		}()
		if crashed == nil {
			if failed != nil {
				t.Error(failed)
			}
			break
		}
		for _, fs := range []*FS{base, crashed} {
			if err := RemoveCheckpoints(fs, filepath.Dir(dir)); err != nil {
				t.Error(err)
			}
			db := mustOpen(t, dir, Options{FS: fs})
			v := mustGet(t, db, "key00000")
			wantRow(t, db, "key00009", v)
			seen[v] = true
			mustClose(t, db)
		}
	}
	if !seen["old"] || !seen["new"] {
		t.Errorf("seen: %v", seen)
	}
}

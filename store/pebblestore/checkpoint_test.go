package pebblestore

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidemark/tidemark/store"
)

const checkpointDir = "/state/app/task.checkpoint"

func mustCheckpoint(t testing.TB, db *DB, dir string) *Checkpoint {
	t.Helper()
	cp, err := db.Checkpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cp
}

// download copies a checkpoint to where a database is.
func download(t testing.TB, cp *Checkpoint, fs *FS, dir string) {
	t.Helper()
	r, err := NewRestore(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := cp.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		w, err := r.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		b := content(t, cp, f)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, cp *Checkpoint, f CheckpointFile) []byte {
	t.Helper()
	in, closer, err := cp.Open(f.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	b, err := io.ReadAll(io.NewSectionReader(in, 0, f.Size))
	if err != nil || int64(len(b)) != f.Size {
		t.Fatal(len(b), err)
	}
	return b
}

// all reads a database in order.
func all(t testing.TB, db store.DB) []string {
	t.Helper()
	rows, err := scan(db)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func scan(db store.DB) (rows []string, err error) {
	it, err := db.Scan(nil, nil)
	if err != nil {
		return nil, err
	}
	for it.Next() {
		rows = append(rows, string(it.Key())+"="+string(it.Value()))
	}
	err = it.Err()
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	return rows, err
}

func wantRows(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d rows, want %d; they differ at %d: %.100q, want %.100q",
		what, len(got), len(want), at, got[at:min(at+1, len(got))], want[at:min(at+1, len(want))])
}

// A checkpoint is what the database was at that moment, whatever is written and compacted behind, and it outlives it.
func TestCheckpoint(t *testing.T) {
	for name, fs := range map[string]*FS{"memory": NewMemFS(), "disk": OSFS()} {
		t.Run(name, func(t *testing.T) {
			dir := dir
			if name == "disk" {
				dir = t.TempDir() + "/task"
			}
			db := mustOpen(t, dir, Options{FS: fs})
			load(t, db, rows(2000, "loaded"))
			apply(t, db, "key00005", "applied")
			at := all(t, db)
			cp := mustCheckpoint(t, db, dir+".new/1.checkpoint")
			for n := range 12 {
				load(t, db, rows(2000, fmt.Sprint(n)))
				apply(t, db, fmt.Sprint("more", n), "1")
			}
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			now := all(t, db)
			mustClose(t, db)
			download(t, cp, fs, dir+"2")
			if err := cp.Remove(); err != nil {
				t.Error(err)
			}
			if err := cp.Remove(); err != nil {
				t.Error(err)
			}
			copied := mustOpen(t, dir+"2", Options{FS: fs})
			wantRows(t, "checkpoint", all(t, copied), at)
			load(t, copied, rows(10, "forked"))
			mustClose(t, copied)
			db = mustOpen(t, dir, Options{FS: fs})
			wantRows(t, "original", all(t, db), now)
			mustClose(t, db)
		})
	}
}

func TestCheckpointIsLinked(t *testing.T) {
	dir := t.TempDir() + "/task"
	db := mustOpen(t, dir, Options{})
	defer mustClose(t, db)
	load(t, db, rows(2000, "v"))
	cp := mustCheckpoint(t, db, dir+CheckpointSuffix)
	files, err := cp.Files()
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir+CheckpointSuffix, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if isTableName(f.Name) {
			tables++
			if n := info.Sys().(*syscall.Stat_t).Nlink; n != 2 {
				t.Errorf("%s has %d names", f.Name, n)
			}
		}
	}
	if tables == 0 {
		t.Errorf("no tables: %v", files)
	}
}

// A checkpoint beside reads from another goroutine, and while compactions run.
func TestCheckpointDuringReads(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	defer mustClose(t, db)
	apply(t, db, "last", "0")
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := scan(db); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for n := range 15 {
		v := fmt.Sprint(n)
		load(t, db, rows(300, v))
		apply(t, db, "last", v)
		cp := mustCheckpoint(t, db, checkpointDir)
		download(t, cp, fs, dir+"2")
		if err := cp.Remove(); err != nil {
			t.Fatal(err)
		}
		copied := mustOpen(t, dir+"2", Options{FS: fs})
		wantRow(t, copied, "last", v)
		wantRow(t, copied, "key00299", v)
		mustClose(t, copied)
	}
	close(stop)
	wg.Wait()
}

// Whatever moment a checkpoint is cut off at, by a crash or by an error, the database is what it was, and nothing stays
// behind.
func TestCheckpointInterrupted(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for after := 0; ; after++ {
		fs := NewMemFS()
		n, hit := -1, false
		var crashed *FS
		crash := func(op Op) error {
			if !op.Write || n < 0 {
				return nil
			}
			if n++; n <= after {
				return nil
			}
			if !hit {
				hit = true
				clone, err := fs.CrashClone(rng.IntN(101), rng)
				if err != nil {
					t.Error(err)
				}
				crashed = clone
			}
			return syscall.ENOSPC
		}
		var mu sync.Mutex
		db := mustOpen(t, dir, Options{FS: fs.Inject(func(op Op) error {
			mu.Lock()
			defer mu.Unlock()
			return crash(op)
		})})
		load(t, db, rows(500, "v"))
		want := all(t, db)
		mu.Lock()
		n = 0
		mu.Unlock()
		_, err := db.Checkpoint(checkpointDir)
		mu.Lock()
		n = -1
		mu.Unlock()
		if !hit {
			if err != nil {
				t.Error(err)
			}
			mustClose(t, db)
			if after < 5 {
				t.Errorf("a checkpoint takes %d operations", after)
			}
			return
		}
		if err == nil {
			mustClose(t, db)
			continue // a failed clean-up of a file that was to be removed
		}
		wantErr(t, "checkpoint", err, store.ErrStorage)
		wantRows(t, "after the error", all(t, db), want)
		mustClose(t, db)
		for _, fs := range []*FS{fs, crashed} {
			db := mustOpen(t, dir, Options{FS: fs})
			wantRows(t, "after reopening", all(t, db), want)
			if err := RemoveCheckpoints(fs, filepath.Dir(dir)); err != nil {
				t.Error(err)
			}
			if names, _ := fs.List(filepath.Dir(dir)); !slices.Equal(names, []string{"task"}) {
				t.Errorf("left: %v", names)
			}
			mustCheckpoint(t, db, checkpointDir)
			mustClose(t, db)
		}
	}
}

func TestCheckpointRefused(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	if _, err := db.Checkpoint("/state/app/other"); err == nil {
		t.Error("a name without the suffix was taken")
	}
	cp := mustCheckpoint(t, db, checkpointDir)
	_, err := db.Checkpoint(checkpointDir)
	wantErr(t, "again", err, store.ErrStorage)
	for _, name := range []string{"", "..", "../task/LOCK", "LOCK", "a/b"} {
		if _, _, err := cp.Open(name); err == nil {
			t.Errorf("opened %q", name)
		}
	}
	mustClose(t, db)
	_, err = db.Checkpoint(dir + "2" + CheckpointSuffix)
	wantErr(t, "closed", err, store.ErrClosed)
	if FormatVersion() != int(formatVersion) {
		t.Error(FormatVersion())
	}
}

// RemoveCheckpoints takes what is left over and nothing else.
func TestRemoveCheckpoints(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	load(t, db, rows(10, "v"))
	mustCheckpoint(t, db, checkpointDir)
	mustClose(t, db)
	if _, err := NewRestore(fs, dir); err != nil {
		t.Fatal(err)
	}
	if err := fs.WriteFile("/state/app/instance.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := RemoveCheckpoints(fs, "/state/app"); err != nil {
		t.Fatal(err)
	}
	names, _ := fs.List("/state/app")
	if slices.Sort(names); strings.Join(names, " ") != "instance.json task" {
		t.Errorf("left: %v", names)
	}
	if err := RemoveCheckpoints(fs, "/nothing"); err != nil {
		t.Error(err)
	}
}

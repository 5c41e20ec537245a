package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tidemark/tidemark/store"
)

// fault is a switch for errors of a file system.
type fault struct {
	on    atomic.Bool
	match func(Op) bool
	err   error
	hits  atomic.Int64
}

func (f *fault) before(op Op) error {
	if f.on.Load() && f.match(op) {
		f.hits.Add(1)
		return f.err
	}
	return nil
}

func isTable(op Op) bool    { return strings.HasSuffix(op.Path, ".sst") }
func isManifest(op Op) bool { return strings.Contains(op.Path, "MANIFEST") }

// D-DISK-FULL while a run is written: the run is refused as a whole, and goes in when there is space again.
func TestDDiskFullLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return op.Sync && strings.Contains(op.Path, runPrefix) }}
		db := mustOpen(t, dir, Options{FS: NewMemFS().Inject(full.before)})
		defer mustClose(t, db)
		load(t, db, rows(10, "old"))
		full.on.Store(true)
		wantErr(t, "load", db.Load(rows(2000, "new")), store.ErrStorage)
		wantRow(t, db, "key00005", "old")
		full.on.Store(false)
		load(t, db, rows(2000, "new"))
		wantRow(t, db, "key00005", "new")
		if names, _ := (&FS{fs: db.gate}).List(dir); strings.Contains(strings.Join(names, " "), runPrefix) {
			t.Errorf("left over: %v", names)
		}
	})
}

// D-DISK-FULL while a memtable is flushed: Flush and Apply say so instead of waiting, reads go on, Pebble tries again
// ten times a second and not 17,000 times, and all is well when there is space again.
func TestDDiskFullFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return op.Write && isTable(op) }}
		db := mustOpen(t, dir, Options{FS: NewMemFS().Inject(full.before)})
		defer mustClose(t, db)
		apply(t, db, "a", "1")
		full.on.Store(true)
		wantErr(t, "flush", db.Flush(), store.ErrStorage)
		wantRow(t, db, "a", "1")
		wantErr(t, "apply", applyErr(db, "b", "1"), store.ErrStorage)
		wantErr(t, "load", db.Load(rows(1, "x")), store.ErrStorage)
		full.hits.Store(0)
		for range 50 {
			<-db.gate.clock.After(fullDiskPause)
		}
		if n := full.hits.Load(); n < 10 || n > 200 {
			t.Errorf("%d attempts in 5 s", n)
		}
		full.on.Store(false)
		for db.background.Load() != nil {
			<-db.gate.clock.After(fullDiskPause)
		}
		apply(t, db, "b", "2")
		if err := db.Flush(); err != nil {
			t.Error(err)
		}
		wantRow(t, db, "a", "1")
		wantRow(t, db, "b", "2")
	})
}

// D-DISK-FULL while the manifest is written: Pebble would end the process. The database becomes unusable, the disk stays
// as it is, and opening again gives what was durable, the run in doubt wholly or not at all.
func TestDDiskFullManifest(t *testing.T) {
	for _, what := range []string{"load", "flush"} {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sync=%v", what, sync), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testManifestFailure(t, what, sync) })
			})
		}
	}
}

func testManifestFailure(t *testing.T, what string, sync bool) {
	disk := NewMemFS()
	full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return isManifest(op) && op.Write && op.Sync == sync }}
	var fatal atomic.Int64
	db := mustOpen(t, dir, Options{FS: disk.Inject(full.before), OnFatal: func(err error) {
		wantErr(t, "OnFatal", err, store.ErrStorage)
		fatal.Add(1)
	}})
	load(t, db, rows(100, "old"))
	apply(t, db, "applied", "1")
	full.on.Store(true)
	if what == "load" {
		full.on.Store(false)
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		full.on.Store(true)
		wantErr(t, "load", db.Load(rows(200, "new")), store.ErrStorage)
	} else {
		wantErr(t, "flush", db.Flush(), store.ErrStorage)
	}
	full.on.Store(false)
	_, _, err := db.Get(nil, []byte("a"))
	wantErr(t, "get", err, store.ErrStorage)
	_, err = db.Scan(nil, nil)
	wantErr(t, "scan", err, store.ErrStorage)
	wantErr(t, "apply", applyErr(db, "b", "1"), store.ErrStorage)
	mustClose(t, db)
	if n := fatal.Load(); n != 1 {
		t.Errorf("OnFatal was called %d times", n)
	}
	for _, fs := range []*FS{crashed(t, disk), disk} {
		db = mustOpen(t, dir, Options{FS: fs})
		first, _, err := db.Get(nil, []byte("key00000"))
		if err != nil {
			t.Fatal(err)
		}
		if what == "load" {
			wantRow(t, db, "applied", "1")
			wantRow(t, db, "key00199", map[string]string{"new": "new"}[string(first)])
		}
		wantRow(t, db, "key00099", string(first))
		mustClose(t, db)
	}
}

func crashed(t *testing.T, fs *FS) *FS {
	t.Helper()
	clone, err := fs.CrashClone(0, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return clone
}

// D-DISK-FULL in a compaction: it is tried again, and nothing else suffers.
func TestDDiskFullCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &fault{err: syscall.ENOSPC, match: func(op Op) bool { return op.Write && isTable(op) }}
		db := mustOpen(t, dir, Options{FS: NewMemFS().Inject(full.before)})
		defer mustClose(t, db)
		for n := range 9 {
			load(t, db, rows(500, fmt.Sprint(n)))
			synctest.Wait()
		}
		full.on.Store(true)
		for n := range 12 {
			_ = db.Load(rows(500, fmt.Sprint(100+n))) // the table is linked, which may fail as well
			wantRow(t, db, "key00499", mustGet(t, db, "key00000"))
		}
		full.on.Store(false)
		for db.background.Load() != nil {
			<-db.gate.clock.After(fullDiskPause)
		}
		load(t, db, rows(500, "last"))
		wantRow(t, db, "key00499", "last")
	})
}

func mustGet(t *testing.T, db *DB, key string) string {
	t.Helper()
	v, _, err := db.Get(nil, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// D-DAMAGED: whichever byte is flipped, opening or reading either says so or shows a state the database once had.
func TestDDamaged(t *testing.T) {
	base := NewMemFS()
	db := mustOpen(t, dir, Options{FS: base})
	for _, v := range []string{"1", "2", "3"} {
		load(t, db, rows(2000, v))
	}
	mustClose(t, db)
	names, err := base.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	reported := map[string]int{}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		kind := strings.Trim(strings.SplitN(name, "-", 2)[0], "0123456789")
		for range 15 {
			fs, err := base.CrashClone(100, rng)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			b, err := fs.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 0 {
				break
			}
			at := rng.IntN(len(b))
			b[at] ^= 1 << rng.IntN(8)
			if err := fs.WriteFile(path, b); err != nil {
				t.Fatal(err)
			}
			if damaged(t, fs, fmt.Sprintf("%s at %d", name, at)) {
				reported[kind]++
			}
		}
	}
	t.Logf("reported: %v", reported)
	if reported[".sst"] < 30 || reported["MANIFEST"] < 15 {
		t.Errorf("damage was reported too seldom: %v", reported)
	}
}

// damaged opens a damaged database, reads all of it, and reports whether it said that it is corrupt.
func damaged(t *testing.T, fs *FS, what string) bool {
	t.Helper()
	var fatal atomic.Int64
	db, err := Open(dir, Options{FS: fs, OnFatal: func(error) { fatal.Add(1) }})
	if err != nil {
		wantErr(t, what, err, store.ErrCorrupt)
		if _, err := SetAside(fs, dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return true
	}
	defer mustClose(t, db)
	it, err := db.Scan(nil, nil)
	if err == nil {
		n, first := 0, ""
		for it.Next() {
			if v := string(it.Value()); n == 0 {
				first = v
			} else if v != first {
				t.Errorf("%s: row %d is %q, the first %q", what, n, v, first)
				break
			}
			n++
		}
		if err = it.Err(); err == nil && n != 2000 && n != 0 {
			t.Errorf("%s: %d rows", what, n)
		}
		_ = it.Close()
	}
	if err == nil {
		return false
	}
	wantErr(t, what, err, store.ErrCorrupt)
	if fatal.Load() != 1 {
		t.Errorf("%s: OnFatal was called %d times", what, fatal.Load())
	}
	wantErr(t, what+", apply", applyErr(db, "a", "1"), store.ErrCorrupt)
	return true
}

// D-DAMAGED in the background: a compaction that meets damage makes the database unusable, and changes nothing.
func TestDDamagedCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		db := mustOpen(t, dir, Options{FS: fs})
		load(t, db, rows(2000, "old"))
		mustClose(t, db)
		names, _ := fs.List(dir)
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				b, _ := fs.ReadFile(filepath.Join(dir, name))
				b[100] ^= 1
				if err := fs.WriteFile(filepath.Join(dir, name), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		var fatal atomic.Int64
		db = mustOpen(t, dir, Options{FS: fs, OnFatal: func(err error) {
			wantErr(t, "OnFatal", err, store.ErrCorrupt)
			fatal.Add(1)
		}})
		var err error
		for n := 0; n < 100 && err == nil; n++ {
			err = db.Load(rows(2000, fmt.Sprint(n)))
			synctest.Wait()
		}
		wantErr(t, "load", err, store.ErrCorrupt)
		if fatal.Load() != 1 {
			t.Errorf("OnFatal was called %d times", fatal.Load())
		}
		before, _ := fs.List(dir)
		mustClose(t, db)
		if after, _ := fs.List(dir); len(after) < len(before) {
			t.Errorf("files are gone: %v, then %v", before, after)
		}
	})
}

// A broken disk is not tried again.
func TestBrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &fault{err: syscall.EIO, match: func(op Op) bool { return op.Sync && isTable(op) }}
		var fatal atomic.Int64
		fs := NewMemFS()
		db := mustOpen(t, dir, Options{FS: fs.Inject(broken.before), OnFatal: func(error) { fatal.Add(1) }})
		load(t, db, rows(10, "v"))
		apply(t, db, "a", "1")
		broken.on.Store(true)
		wantErr(t, "flush", db.Flush(), store.ErrStorage)
		wantErr(t, "flush again", db.Flush(), store.ErrStorage)
		mustClose(t, db)
		if fatal.Load() != 1 || broken.hits.Load() != 1 {
			t.Errorf("%d times fatal after %d attempts", fatal.Load(), broken.hits.Load())
		}
		db = mustOpen(t, dir, Options{FS: fs})
		defer mustClose(t, db)
		wantRow(t, db, "key00009", "v")
	})
}

// What is fatal is said once.
func TestOnFatalOnce(t *testing.T) {
	n := 0
	db := mustOpen(t, dir, Options{FS: NewMemFS(), OnFatal: func(error) { n++ }})
	defer mustClose(t, db)
	for range 3 {
		db.die(store.ErrStorage)
	}
	if n != 1 {
		t.Errorf("%d times", n)
	}
}

// A table file that is missing is damage, too.
func TestDDamagedMissingTable(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	load(t, db, rows(10, "v"))
	mustClose(t, db)
	names, _ := fs.List(dir)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			if err := fs.fs.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := Open(dir, Options{FS: fs})
	wantErr(t, "open", err, store.ErrCorrupt)
}

// A disk that refuses to open is not a damaged database.
func TestOpenRefused(t *testing.T) {
	fs := NewMemFS()
	db := mustOpen(t, dir, Options{FS: fs})
	load(t, db, rows(10, "v"))
	mustClose(t, db)
	for _, err := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		refuse := &fault{err: err, match: func(op Op) bool { return op.Write || isManifest(op) }}
		refuse.on.Store(true)
		_, openErr := Open(dir, Options{FS: fs.Inject(refuse.before)})
		wantErr(t, err.Error(), openErr, store.ErrStorage)
	}
	db = mustOpen(t, dir, Options{FS: fs})
	wantRow(t, db, "key00009", "v")
	mustClose(t, db)
}

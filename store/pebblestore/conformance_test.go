package pebblestore

import (
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memDisk loses a random part of what was not synced when it crashes.
func memDisk(*testing.T) storetest.Disk {
	fs := NewMemFS()
	return storetest.Disk{
		Open: func() (store.DB, error) { return Open(dir, Options{FS: fs}) },
		Crash: func(rng *rand.Rand) (err error) {
			fs, err = fs.CrashClone(rng.IntN(101), rng)
			return err
		},
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, memDisk) }
func TestState(t *testing.T)       { storetest.RunState(t, memDisk) }
func TestTyped(t *testing.T)       { storetest.RunTyped(t, memDisk) }

// TestOnDisk runs a database on the real file system.
func TestOnDisk(t *testing.T) {
	dir := t.TempDir() + "/app/task"
	db := mustOpen(t, dir, Options{})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v %v", info.Mode(), err)
	}
	load(t, db, rows(1000, "loaded"))
	apply(t, db, "key00007", "applied")
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	db = mustOpen(t, dir, Options{Compression: NoCompression})
	defer mustClose(t, db)
	wantRow(t, db, "key00007", "applied")
	wantRow(t, db, "key00999", "loaded")
	if m := db.Metrics(); m.DiskBytes == 0 || m.Tables == 0 || m.ReadAmplification == 0 {
		t.Errorf("metrics: %+v", m)
	}
}

package pebblestore

import (
	"math/rand/v2"
	"testing"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Disk {
		fs := NewMemFS()
		return storetest.Disk{
			Open: func() (store.DB, error) { return Open("/state/app/task", Options{FS: fs}) },
			Crash: func(rng *rand.Rand) (err error) {
				fs, err = fs.CrashClone(rng.IntN(101), rng)
				return err
			},
		}
	})
}

func TestConformanceOnDisk(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Disk {
		dir := t.TempDir()
		return storetest.Disk{Open: func() (store.DB, error) { return Open(dir, Options{}) }}
	})
}

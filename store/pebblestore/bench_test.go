package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkPersist writes layers of random 16-byte keys with 8-byte values to one database, compactions included.
func BenchmarkPersist(b *testing.B) {
	for _, rows := range []int{1000, 10_000, 500_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			shared := NewShared(SharedOptions{})
			defer shared.Close()
			db, err := Open(b.TempDir(), Options{Shared: shared})
			if err != nil {
				b.Fatal(err)
			}
			s, err := store.Open(db, []store.Spec{{ID: "counts"}}, store.Options{ViewBytes: 16 << 20})
			if err != nil {
				b.Fatal(err)
			}
			v, err := store.ViewOf(s, "counts", codec.Int64())
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var key [16]byte
			var cpu int64
			b.ResetTimer()
			for n := range b.N {
				b.StopTimer()
				for range rows {
					binary.BigEndian.PutUint64(key[:], rng.Uint64N(2_000_000)*0x9e3779b97f4a7c15)
					if err := v.Put(key[:], int64(n), 1); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Seal(nil); err != nil {
					b.Fatal(err)
				}
				if err := s.Commit([]byte("progress"), 1); err != nil {
					b.Fatal(err)
				}
				before := cpuTime()
				b.StartTimer()
				if err := s.Persist(1, true); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				cpu += cpuTime() - before
			}
			b.ReportMetric(float64(cpu)/float64(b.N)/float64(rows), "cpu-ns/row")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "wall-ns/row")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkGet reads rows of a database that fits into the block cache.
func BenchmarkGet(b *testing.B) {
	db, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const rows = 200_000
	bulk, err := store.NewBulk(db, []store.Spec{{ID: "s"}}, 0)
	if err != nil {
		b.Fatal(err)
	}
	var key [16]byte
	for i := range uint64(rows) {
		binary.BigEndian.PutUint64(key[:], i*0x9e3779b97f4a7c15)
		if err := bulk.Add(0, key[:], key[:8], nil, 1); err != nil {
			b.Fatal(err)
		}
	}
	if err := bulk.Finish(nil); err != nil {
		b.Fatal(err)
	}
	dbKey := append([]byte{1, 0}, key[:]...)
	var dst []byte
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	cpu := cpuTime()
	for b.Loop() {
		binary.BigEndian.PutUint64(dbKey[2:], rng.Uint64N(rows)*0x9e3779b97f4a7c15)
		var ok bool
		if dst, ok, err = db.Get(dst[:0], dbKey); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

// BenchmarkBulk restores a million changes of half a million keys.
func BenchmarkBulk(b *testing.B) {
	const changes = 1_000_000
	value := make([]byte, 100)
	for range b.N {
		db, err := Open(b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		cpu := cpuTime()
		bulk, err := store.NewBulk(db, []store.Spec{{ID: "s"}}, 0)
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		var key [16]byte
		for i := range changes {
			binary.BigEndian.PutUint64(key[:], rng.Uint64N(changes/2)*0x9e3779b97f4a7c15)
			binary.BigEndian.PutUint64(value, rng.Uint64())
			if err := bulk.Add(0, key[:], value, nil, int64(i)); err != nil {
				b.Fatal(err)
			}
		}
		if err := bulk.Finish(nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(cpuTime()-cpu)/changes, "cpu-ns/change")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLazy opens a database of 100 MB whose remote store takes 20 ms per request, at 80 MB/s per stream, and reads a
// row, then 200 rows.
func BenchmarkLazy(b *testing.B) {
	origin := mustOpen(b, b.TempDir(), Options{})
	load(b, origin, &bigRows{n: 100_000, size: 1000, rng: rand.New(rand.NewPCG(1, 1))})
	c := upload(b, origin, b.TempDir()+"/1"+CheckpointSuffix)
	mustClose(b, origin)
	c.latency, c.perSecond = 20*time.Millisecond, 80e6
	var size int64
	for _, f := range c.files {
		size += f.Size
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var open, first, many, whole time.Duration
	for range b.N {
		l := c.lazy()
		told := hydrated(&l)
		begin := time.Now()
		db := mustOpenLazy(b, b.TempDir()+"/task", Options{}, l)
		open += time.Since(begin)
		for n := range 200 {
			if _, ok, err := db.Get(nil, fmt.Appendf(nil, "key%05d", rng.IntN(100_000))); !ok || err != nil {
				b.Fatal(ok, err)
			}
			if n == 0 {
				first += time.Since(begin)
			}
		}
		many += time.Since(begin)
		if err := <-told; err != nil {
			b.Fatal(err)
		}
		whole += time.Since(begin)
		mustClose(b, db)
	}
	for unit, d := range map[string]time.Duration{"ms-open": open, "ms-first-read": first, "ms-200-reads": many, "ms-hydrated": whole} {
		b.ReportMetric(float64(d.Milliseconds())/float64(b.N), unit)
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(c.requests)/float64(b.N), "requests")
}

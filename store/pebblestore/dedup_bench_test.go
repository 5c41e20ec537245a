package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark/tidemark/store"
)

// BenchmarkDedup compares an absent id asked for in the database with one added to a store of live ids: the buckets were
// there before, so every new id is a question to the filters.
func BenchmarkDedup(b *testing.B) {
	const buckets = 10
	for _, live := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			shared := NewShared(SharedOptions{CacheBytes: 1 << 30})
			defer shared.Close()
			db, err := Open(b.TempDir(), Options{Shared: shared})
			if err != nil {
				b.Fatal(err)
			}
			specs := []store.Spec{{ID: "d", Kind: store.Dedup, Changelog: true}}
			bulk, err := store.NewBulk(db, specs, 256<<20)
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var hash [16]byte
			next := func() {
				binary.BigEndian.PutUint64(hash[:], rng.Uint64())
				binary.BigEndian.PutUint64(hash[8:], rng.Uint64())
			}
			var key []byte
			for i := range live {
				next()
				key = store.AppendDedupKey(key[:0], uint32(i/(live/buckets)), &hash)
				if err := bulk.Add(0, key, []byte{}, nil, 1); err != nil {
					b.Fatal(err)
				}
			}
			if err := bulk.Finish([]byte("p")); err != nil {
				b.Fatal(err)
			}
			s, err := store.Open(db, specs, store.Options{LayerBytes: 1 << 40, LayerRecords: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			b.Run("bare", func(b *testing.B) {
				cpu := cpuTime()
				var dst []byte
				for range b.N {
					next()
					key = append(key[:0], 1, 0)
					key = store.AppendDedupKey(key, rng.Uint32N(buckets), &hash)
					var ok bool
					if dst, ok, err = db.Get(dst[:0], key); ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
			})
			d, err := store.DedupViewOf(s, "d")
			if err != nil {
				b.Fatal(err)
			}
			b.Run("add", func(b *testing.B) {
				b.ReportAllocs()
				cpu := cpuTime()
				for i := range b.N {
					next()
					if added, err := d.Add(rng.Uint32N(buckets), &hash, 1); !added || err != nil {
						b.Fatal(added, err)
					}
					if i%10_000 == 9999 {
						if err := s.Seal(func(store.Change) error { return nil }); err != nil {
							b.Fatal(err)
						}
						if err := s.Commit([]byte("p"), 0); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
			})
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

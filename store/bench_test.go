package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

// benchKeys returns n keys of 16 bytes in random order.
func benchKeys(n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	slab := make([]byte, 0, 16*n)
	keys := make([][]byte, n)
	for i := range keys {
		slab = binary.BigEndian.AppendUint64(slab, rng.Uint64())
		slab = binary.BigEndian.AppendUint64(slab, uint64(i))
		keys[i] = slab[16*i : 16*i+16 : 16*i+16]
	}
	return keys
}

func benchView(b *testing.B, o Options) (*State, *View[int64]) {
	b.Helper()
	s, err := Open(NewMem(), []Spec{{ID: "counts", Changelog: true}}, o)
	if err != nil {
		b.Fatal(err)
	}
	v, err := ViewOf(s, "counts", codec.Int64())
	if err != nil {
		b.Fatal(err)
	}
	return s, v
}

// cpuTime is the CPU time of the process in ns: on a busy machine the wall clock says little.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkRowSet is the state part of a count: find a row that is in the view and change it.
func BenchmarkRowSet(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			s, v := benchView(b, Options{ViewBytes: 1 << 30})
			add := func(i int) {
				r, err := v.Row(keys[i])
				if err != nil {
					b.Fatal(err)
				}
				v.Set(r, r.Value+1, int64(i))
			}
			for i := range keys {
				add(i)
			}
			rng := rand.New(rand.NewPCG(3, 4))
			// The keys lie one behind the other, as in a fetched batch.
			input := make([]byte, 0, 16<<20)
			for range 1 << 20 {
				input = append(input, keys[rng.IntN(n)]...)
			}
			benchCommit(b, s)
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for i := range b.N {
				at := 16 * (i & (1<<20 - 1))
				r, err := v.Row(input[at : at+16])
				if err != nil {
					b.Fatal(err)
				}
				v.Set(r, r.Value+1, int64(i))
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

func benchCommit(b *testing.B, s *State) {
	if err := s.Seal(func(Change) error { return nil }); err != nil {
		b.Fatal(err)
	}
	if err := s.Commit(nil, 0); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSealCommit is the cost per dirty row of 20,000 of a million rows.
func BenchmarkSealCommit(b *testing.B) {
	const perCommit = 20_000
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			s, v := benchView(b, Options{ViewBytes: 1 << 30})
			rng := rand.New(rand.NewPCG(3, 4))
			dirty := func() {
				for range perCommit {
					r, _ := v.Row(keys[rng.IntN(n)])
					v.Set(r, r.Value+1, 1)
				}
			}
			for i := range keys {
				r, _ := v.Row(keys[i])
				v.Set(r, 1, 1)
			}
			benchCommit(b, s)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += perCommit {
				b.StopTimer()
				dirty()
				if s.layerRecords > 2_000_000 {
					_ = s.Persist(0, true)
				}
				b.StartTimer()
				benchCommit(b, s)
			}
		})
	}
}

// discardDB takes runs and forgets them.
type discardDB struct{ DB }

func (d discardDB) Load(r Run) error {
	for r.Next() {
	}
	return nil
}

// BenchmarkSort is the share of Persist that is not the DB's: per record, all distinct or 20 versions of each row.
func BenchmarkSort(b *testing.B) {
	for _, versions := range []int{1, 20} {
		b.Run(fmt.Sprintf("versions=%d", versions), func(b *testing.B) {
			const records = 1_000_000
			keys := benchKeys(records / versions)
			s, v := benchView(b, Options{ViewBytes: 1 << 30})
			for range versions {
				for i := range keys {
					r, _ := v.Row(keys[i])
					v.Set(r, r.Value+1, 1)
				}
				benchCommit(b, s)
			}
			s.db = discardDB{s.db}
			f := s.Freeze(0, true)
			b.ResetTimer()
			for range b.N {
				if err := f.Write(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
}

// BenchmarkMiss loads rows from the DB through a view that is too small for them.
func BenchmarkMiss(b *testing.B) {
	const n = 100_000
	keys := benchKeys(n)
	s, v := benchView(b, Options{ViewBytes: 1 << 20})
	for i := range keys {
		if err := v.Put(keys[i], 1, 1); err != nil {
			b.Fatal(err)
		}
	}
	benchCommit(b, s)
	if err := s.Persist(0, true); err != nil {
		b.Fatal(err)
	}
	s, err := Open(s.db, s.specs, s.o)
	if err != nil {
		b.Fatal(err)
	}
	if v, err = ViewOf(s, "counts", codec.Int64()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := v.Row(keys[(i*7919)%n]); err != nil {
			b.Fatal(err)
		}
	}
}

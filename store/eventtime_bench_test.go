package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

func benchWindows(b *testing.B, o Options) (*State, *WindowView[int64]) {
	b.Helper()
	s, err := Open(NewMem(), []Spec{{ID: "w", Kind: Window, Changelog: true, Layout: WindowLayout(
		func(e int64) int64 { return e - 60_000 }, func(s int64) int64 { return s + 60_000 }, false)}}, o)
	if err != nil {
		b.Fatal(err)
	}
	w, err := WindowViewOf(s, "w", codec.Int64())
	if err != nil {
		b.Fatal(err)
	}
	return s, w
}

// BenchmarkWindowAdd is the state part of a windowed count: 11 live ends, as with a lateness of ten windows.
func BenchmarkWindowAdd(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			s, w := benchWindows(b, Options{ViewBytes: 1 << 30})
			rng := rand.New(rand.NewPCG(3, 4))
			order := make([]uint32, 1<<20)
			for i := range order {
				order[i] = rng.Uint32N(uint32(n))
			}
			add := func(i int) {
				end := int64(60_000)
				if i%10 == 0 {
					end += int64(i/10%11) * 60_000
				}
				r, err := w.Row(end, keys[order[i&(1<<20-1)]])
				if err != nil {
					b.Fatal(err)
				}
				w.Set(r, r.Value+1, 1)
			}
			for i := range 1 << 20 {
				add(i)
			}
			benchCommit(b, s)
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for i := range b.N {
				add(i)
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkWindowFire scans one end of n rows. Its rows are dirty, or in 30 committed generations, beside ten other ends
// with as many rows each.
func BenchmarkWindowFire(b *testing.B) {
	for _, c := range []struct {
		keys, ends, commits int
	}{{1_000_000, 1, 0}, {100_000, 1, 0}, {100_000, 11, 0}, {100_000, 1, 30}, {100_000, 11, 30}} {
		b.Run(fmt.Sprintf("keys=%d/ends=%d/commits=%d", c.keys, c.ends, c.commits), func(b *testing.B) {
			keys := benchKeys(c.keys)
			s, w := benchWindows(b, Options{ViewBytes: 1 << 30, LayerBytes: 1 << 40, LayerRecords: 1 << 40})
			for i, k := range keys {
				for e := range c.ends {
					r, err := w.Row(int64(e+1)*60_000, k)
					if err != nil {
						b.Fatal(err)
					}
					w.Set(r, 1, 1)
				}
				if c.commits > 0 && i%(c.keys/c.commits) == 0 {
					benchCommit(b, s)
				}
			}
			if c.commits > 0 {
				benchCommit(b, s)
			}
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				for _, g := range w.v.groups.list {
					g.seen = -1 // sort again
				}
				cur, err := w.ScanEnd(60_000)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for cur.Next() {
					if v, err := cur.Value(); v != 1 || err != nil {
						b.Fatal(v, err)
					}
					n++
				}
				if err := cur.Close(); err != nil || n != c.keys {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/float64(c.keys), "cpu-ns/row")
		})
	}
}

// BenchmarkTimers sets timers and fires them, 100,000 at a time.
func BenchmarkTimers(b *testing.B) {
	const n = 100_000
	keys := benchKeys(n)
	s, err := Open(discardDB{NewMem()}, []Spec{{ID: "t", Kind: Timers, Changelog: true}}, Options{ViewBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	v, err := TimerViewOf(s, "t")
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	var set, pop int64
	total := 0
	for b.Loop() {
		cpu := cpuTime()
		for _, k := range keys {
			if err := v.Set(k, nil, rng.Int64N(1_000_000)); err != nil {
				b.Fatal(err)
			}
		}
		set += cpuTime() - cpu
		benchCommit(b, s)
		cpu = cpuTime()
		for {
			_, _, _, ok, err := v.PopDue(1 << 40)
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			total++
		}
		pop += cpuTime() - cpu
		benchCommit(b, s)
		if err := s.Persist(0, true); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(set)/float64(total), "cpu-ns/set")
	b.ReportMetric(float64(pop)/float64(total), "cpu-ns/pop")
}

// BenchmarkTimerReset moves 10,000 timers on and on, as a timeout per key does.
func BenchmarkTimerReset(b *testing.B) {
	keys := benchKeys(10_000)
	s, err := Open(discardDB{NewMem()}, []Spec{{ID: "t", Kind: Timers, Changelog: true}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	v, err := TimerViewOf(s, "t")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	cpu := cpuTime()
	for i := range b.N {
		if err := v.Set(keys[i%len(keys)], nil, int64(i)+100_000); err != nil {
			b.Fatal(err)
		}
		if i%100_000 == 99_999 {
			benchCommit(b, s)
			if _, _, _, ok, err := v.PopDue(0); ok || err != nil {
				b.Fatal(ok, err)
			}
			_ = s.Persist(0, true)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

// BenchmarkSession adds records to sessions of 10,000 keys: each lengthens one.
func BenchmarkSession(b *testing.B) {
	keys := benchKeys(10_000)
	s, err := Open(discardDB{NewMem()}, []Spec{{ID: "s", Kind: Session, Changelog: true}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	v, err := SessionViewOf(s, "s", codec.Int64())
	if err != nil {
		b.Fatal(err)
	}
	var spans []Span
	b.ReportAllocs()
	cpu := cpuTime()
	for i := range b.N {
		key := keys[i%len(keys)]
		at := Span{int64(i), int64(i) + 30_000}
		if spans, err = v.Overlapping(spans[:0], key, at); err != nil {
			b.Fatal(err)
		}
		if len(spans) == 0 {
			err = v.Put(key, at, 1, at.Start)
		} else {
			var r *Row[int64]
			if r, err = v.Row(key, spans[0]); err != nil {
				b.Fatal(err)
			}
			to := Span{spans[0].Start, at.End}
			err = v.Move(key, spans[0], to, r.Value+1, at.Start)
		}
		if err != nil {
			b.Fatal(err)
		}
		if i%100_000 == 99_999 {
			benchCommit(b, s)
			_ = s.Persist(0, true)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

// BenchmarkDedupMem adds new ids to buckets above everything the DB holds.
func BenchmarkDedupMem(b *testing.B) {
	s, err := Open(discardDB{NewMem()}, []Spec{{ID: "d", Kind: Dedup, Changelog: true}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := DedupViewOf(s, "d")
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var hash [16]byte
	b.ReportAllocs()
	cpu := cpuTime()
	for i := range b.N {
		binary.BigEndian.PutUint64(hash[:], rng.Uint64())
		bucket := uint32(i / 100_000)
		if added, err := d.Add(bucket, &hash, 1); !added || err != nil {
			b.Fatal(added, err)
		}
		if i%20_000 == 19_999 {
			d.Expire(bucket - min(bucket, 5))
			benchCommit(b, s)
			if i%200_000 == 199_999 {
				_ = s.Persist(0, true)
			}
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

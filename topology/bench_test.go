package topology_test

import (
	"encoding/binary"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// discard is an Output for measurements.
type discard struct{ n int }

func (*discard) Late(*processor.Late) error { return nil }

func (d *discard) Send(int, []byte, int64, []byte, []byte, []processor.Header) error {
	d.n++
	return nil
}

// bench builds the only task of a topology over an output that discards.
func bench(tb testing.TB, t *topology.Topology) (*processor.Task, *store.State) {
	tb.Helper()
	plan, err := t.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return benchSub(tb, plan.Subs[len(plan.Subs)-1])
}

// benchSub builds the task of one sub-topology.
func benchSub(tb testing.TB, s *topology.Sub) (*processor.Task, *store.State) {
	tb.Helper()
	state, err := store.Open(store.NewMem(), s.Stores, store.Options{ViewBytes: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	task, err := s.NewTask(processor.Env{Task: processor.TaskID{Sub: s.ID}, Output: new(discard), State: state})
	if err != nil {
		tb.Fatal(err)
	}
	return task, state
}

// keysOf returns n different keys of 16 bytes, scattered.
func keysOf(n int) [][]byte {
	keys := make([][]byte, n)
	x := uint64(1)
	for i := range keys {
		b := make([]byte, 16)
		x = x*6364136223846793005 + 1442695040888963407
		binary.BigEndian.PutUint64(b, x)
		binary.BigEndian.PutUint64(b[8:], uint64(i))
		keys[i] = b
	}
	return keys
}

func benchProcess(b *testing.B, t *topology.Topology, keys [][]byte, value []byte) {
	task, state := bench(b, t)
	r := processor.Record{Topic: "in", Value: value, Time: 1}
	run := func(n int) {
		for i := range n {
			r.Key, r.Offset = keys[i%len(keys)], int64(i)
			if err := task.Process(0, &r); err != nil {
				b.Fatal(err)
			}
		}
	}
	run(min(len(keys), 1<<20)) // fill the views
	if err := state.Seal(func(store.Change) error { return nil }); err != nil {
		b.Fatal(err)
	}
	if err := state.Commit(nil, 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
}

func BenchmarkPass(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[]byte, []byte]("in").To("out")
	benchProcess(b, t, keysOf(1024), make([]byte, 100))
}

func BenchmarkFilterMap(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[]byte, []byte]("in").
		Filter(func(v []byte) bool { return v[0] == 0 }).
		Map(func(v []byte) []byte { return v[1:] }).
		To("out")
	benchProcess(b, t, keysOf(1024), make([]byte, 100))
}

func BenchmarkKeyByCut(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[]byte, string]("in").KeyBy("by", func(v string) string { return v[:16] }).Count("n")
	plan, err := t.Build()
	if err != nil {
		b.Fatal(err)
	}
	task, err := plan.Subs[0].NewTask(processor.Env{Output: new(discard)})
	if err != nil {
		b.Fatal(err)
	}
	r := processor.Record{Key: make([]byte, 16), Value: make([]byte, 100)}
	b.ReportAllocs()
	for b.Loop() {
		if err := task.Process(0, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCountHot(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[16]byte, []byte]("in").Count("n")
	benchProcess(b, t, keysOf(1024), make([]byte, 100))
}

func BenchmarkCountUniform(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[16]byte, []byte]("in").Count("n")
	benchProcess(b, t, keysOf(1<<20), make([]byte, 100))
}

func BenchmarkCountEveryUpdate(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[16]byte, []byte]("in").Count("n", topology.EveryUpdate()).To("out")
	benchProcess(b, t, keysOf(1024), make([]byte, 100))
}

func BenchmarkCountFlush(b *testing.B) {
	t := topology.New("bench")
	t.Stream[[16]byte, []byte]("in").Count("n").To("out")
	task, state := bench(b, t)
	keys := keysOf(4096)
	r := processor.Record{Topic: "in", Value: []byte("x"), Time: 1}
	b.ReportAllocs()
	for b.Loop() {
		for _, k := range keys {
			r.Key = k
			if err := task.Process(0, &r); err != nil {
				b.Fatal(err)
			}
		}
		if err := task.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := state.Seal(func(store.Change) error { return nil }); err != nil {
			b.Fatal(err)
		}
		if err := state.Commit(nil, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
}

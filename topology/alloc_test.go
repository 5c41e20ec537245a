package topology_test

import (
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/invariants"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// Nothing that runs per record allocates but user code and the codecs of strings; chunks of output bytes are shared by
// hundreds of records and round to zero.
func TestAllocations(t *testing.T) {
	odd := topology.Output[[]byte, []byte]("odd")
	kv := topology.KeyValue[[]byte, int64]("kv")
	for _, c := range []struct {
		name    string
		declare func(*topology.Stream[[]byte, []byte])
	}{
		{"pass", func(s *topology.Stream[[]byte, []byte]) { s.To("out") }},
		{"filter, map, peek", func(s *topology.Stream[[]byte, []byte]) {
			s.Filter(func(v []byte) bool { return len(v) > 0 }).Map(func(v []byte) []byte { return v[1:] }).Peek(func([]byte) {}).To("out")
		}},
		{"long forms", func(s *topology.Stream[[]byte, []byte]) {
			s.TryFilter(func(_ *topology.Context, k, _ []byte) (bool, error) { return len(k) > 0, nil }).
				TryMap(func(_ *topology.Context, k, v []byte) ([]byte, error) { return v[1:], nil }).
				TryPeek(func(*topology.Context, []byte, []byte) error { return nil }).To("out")
		}},
		{"flat-map", func(s *topology.Stream[[]byte, []byte]) {
			s.FlatMap(func(v []byte, emit func([]byte)) { emit(v); emit(v[1:]) }).To("out")
		}},
		{"fan-out and split", func(s *topology.Stream[[]byte, []byte]) {
			s.To("a")
			s.To("b")
			s.Split().When("x", func(v []byte) bool { return len(v) == 0 }, func(s *topology.Stream[[]byte, []byte]) { s.To("c") }).
				Otherwise("y", func(s *topology.Stream[[]byte, []byte]) { s.To("d") })
		}},
		{"key-by", func(s *topology.Stream[[]byte, []byte]) {
			s.KeyBy("k", func(v []byte) []byte { return v[:4] }).To("out")
		}},
		{"cut", func(s *topology.Stream[[]byte, []byte]) {
			s.KeyBy("k", func(v []byte) []byte { return v[:4] }).Count("n")
		}},
		{"count", func(s *topology.Stream[[]byte, []byte]) { s.Count("n") }},
		{"count, every update", func(s *topology.Stream[[]byte, []byte]) {
			s.Count("n", topology.EveryUpdate()).Filter(func(n int64) bool { return n > 0 }).
				Map(func(n int64) int64 { return -n }).To("out")
		}},
		{"sum, min, max", func(s *topology.Stream[[]byte, []byte]) {
			size := func(v []byte) int64 { return int64(len(v)) }
			s.Sum("sum", size)
			s.Min("min", size)
			s.Max("max", size)
		}},
		{"folds", func(s *topology.Stream[[]byte, []byte]) {
			s.Aggregate("fold", topology.Fold(func(a [4]int, v []byte) [4]int { a[0]++; return a }))
			s.Aggregate("into", topology.FoldInto(func(a *[4]int, v []byte) { a[0]++ }))
		}},
		{"tumbling windows", func(s *topology.Stream[[]byte, []byte]) {
			s.Timestamps(nil).Window(window.Tumbling(time.Minute)).Count("n")
		}},
		{"hopping windows", func(s *topology.Stream[[]byte, []byte]) {
			s.Timestamps(nil).Window(window.Hopping(time.Hour, time.Minute)).Count("n")
		}},
		{"sessions", func(s *topology.Stream[[]byte, []byte]) {
			s.Timestamps(nil).Window(window.Session(time.Minute)).Count("n")
		}},
		{"processor", func(s *topology.Stream[[]byte, []byte]) {
			p := s.Process("p", func(out topology.Emitter[[]byte, []byte], r topology.Record[[]byte, []byte]) error {
				n, _, err := kv.Get(out, r.Key)
				if err != nil {
					return err
				}
				out.Emit(r.Key, r.Value)
				odd.Emit(out, r.Key, r.Value)
				return kv.Put(out, r.Key, n+1)
			}, kv, odd)
			p.To("out")
			p.Side(odd).To("odd")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if invariants.Enabled {
				return // its checks allocate
			}
			top := topology.New("t")
			c.declare(top.Stream[[]byte, []byte]("in"))
			plan := build(t, top)
			task, _ := benchSub(t, plan.Subs[0])
			r := processor.Record{Topic: "in", Key: []byte("0123456789abcdef"), Value: make([]byte, 100), Time: 1}
			r.Headers = []processor.Header{{Key: "a"}}
			process := func() {
				if err := task.Process(0, &r); err != nil {
					t.Fatal(err)
				}
			}
			process()
			if n := testing.AllocsPerRun(2000, process); n > 0 {
				t.Errorf("%v allocations per record", n)
			}
		})
	}
}

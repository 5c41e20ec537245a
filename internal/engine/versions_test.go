package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// countingMore is counting with a store more: another state.
func countingMore() *topology.Topology {
	top := topology.New("app")
	in := top.Stream[string, string]("in")
	in.Count("counts", topology.EveryUpdate()).To("out")
	in.Reduce("last", func(_, v string) string { return v })
	return top
}

// countingFiltered is counting with another stateless operator: the same state.
func countingFiltered() *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Filter(func(string) bool { return true }).Count("counts", topology.EveryUpdate()).To("out")
	return top
}

// F27: an instance whose topology has another state joins, gets no task and says why. It takes over without
// loss when the last instance with the old one has gone, whether it left or died.
func TestF27OtherState(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 100, 10)
				a := s.start("a", counting(), nil, nil)
				b := s.start("b", counting(), nil, nil)
				s.counts("out", 100, 10)
				c := s.start("c", countingMore(), nil, nil)
				s.await("c says that it waits", func() bool { return c.said("waiting without tasks") > 0 && c.phase("waiting: ") })
				s.feed("in", 100, 100, 10)
				s.counts("out", 200, 10)
				a.stop()
				s.pass(dead)
				if got := c.running(); len(got) != 0 {
					t.Errorf("c runs %v beside an instance with the old state", got)
				}
				select {
				case <-c.e.Ready():
					t.Error("c is ready")
				default:
				}
				s.feed("in", 200, 100, 10)
				s.counts("out", 300, 10)
				if dies {
					b.crash()
				} else {
					b.stop()
				}
				s.feed("in", 300, 100, 10)
				s.counts("out", 400, 10)
				c.awaitTasks(2)
				// Now the old one is the one that waits.
				d := s.start("d", counting(), nil, nil)
				s.await("d says that it waits", func() bool { return d.said("waiting without tasks") > 0 })
				last := make(map[string]string)
				for _, r := range s.read("app-last-changelog") {
					last[string(r.key)] = string(r.value)
				}
				s.feed("in", 400, 100, 10)
				s.counts("out", 500, 10)
			})
		})
	}
}

// F27: instances that differ in nothing but stateless operators share the work, and roll over under load.
func TestF27StatelessChange(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 4, "out": 4}}, func(t *testing.T, s *scene) {
		next := 0
		load := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); s.pass(50 * time.Millisecond) {
				s.feed("in", next, 20, 20)
				next += 20
			}
		}
		a := s.start("a", counting(), nil, nil)
		load(time.Second)
		b := s.start("b", countingFiltered(), nil, nil)
		load(3 * time.Second)
		if len(a.running()) != 2 || len(b.running()) != 2 {
			t.Errorf("a runs %v, b runs %v", a.running(), b.running())
		}
		a.stop()
		load(2 * time.Second)
		b.awaitTasks(4)
		s.counts("out", next, 20)
	})
}

// F27: a store that both topologies know must keep its codec: the other one waits, and is refused when nobody is left
// with the one in force.
func TestF27OtherCodec(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 10, 5)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 10, 5)
		other := func() *topology.Topology {
			top := topology.New("app")
			top.Stream[string, string]("in").Reduce("counts", func(x, y string) string { return x + y }).To("out")
			return top
		}
		b := s.start("b", other(), nil, nil)
		s.await("b says that it waits, and why", func() bool {
			return b.said("waiting without tasks") > 0 && b.said("incompatible with the topology in force") == 1
		})
		d := a.stop()
		b.refused(engine.ErrIncompatible, "counts", "int64", "string", "tidemark reset")
		s.start("a", other(), d, nil).refused(engine.ErrIncompatible, "counts")
		s.feed("in", 10, 10, 5)
		s.start("a", counting(), d, nil)
		s.counts("out", 20, 5)
	})
}

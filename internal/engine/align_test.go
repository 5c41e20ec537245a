package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// While a backlog is read, a partition of another task that is far ahead waits for the slow one, and goes on with it. Read
// to its end, the slow one holds nobody up.
func TestAlignment(t *testing.T) {
	t.Parallel()
	const drift = time.Minute
	for _, c := range []struct {
		workers int
		align   time.Duration
	}{{1, drift}, {2, drift}, {2, watermark.Never}} {
		t.Run(fmt.Sprintf("workers=%d, drift=%v", c.workers, c.align), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
				var slow, fast []rec
				for i := range 2000 { // partition 1 covers ten times the time with as many records
					slow, fast = append(slow, at(0, "slow", float64(i)*0.1+1)), append(fast, at(1, "fast", float64(i)+1))
				}
				s.send(append(slow, fast...)...)
				top := topology.New("app")
				top.Stream[string, string]("in").Timestamps(nil, watermark.Align(c.align), watermark.IdleAfter(watermark.Never)).
					Peek(func(v string) {
						if stand(100 * time.Microsecond); v == "slow" {
							stand(2 * time.Millisecond)
						}
					}).
					KeyBy("by-value", func(v string) string { return v }).
					Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
				n := s.start("a", top, nil, func(cfg *engine.Config) { cfg.Workers = c.workers })
				looks, most := 0, int64(0)
				s.await("the end", func() bool {
					w0, ok0 := n.mark("by-value", 0)
					w1, ok1 := n.mark("by-value", 1)
					if ok0 && ok1 && w0.W > 0 && w0.W < 190_000 {
						looks++
						most = max(most, w1.W-w0.W)
					}
					return ok0 && ok1 && w1.W >= 1_999_000 && w0.W >= 199_000
				})
				s.caughtUp("in")
				if looks < 2 {
					t.Errorf("%d looks: the test shows nothing", looks)
				}
				// The two are shown at slightly different moments.
				if limit := 2 * drift.Milliseconds(); (most > limit) != (c.align == watermark.Never) {
					t.Errorf("partition 1 was up to %d ms ahead", most)
				}
			})
		})
	}
}

// A partition that another instance reads is waited for too. Nobody is judged by one report, so the fast one gets ahead at
// the start.
func TestAlignmentAcrossInstances(t *testing.T) {
	t.Parallel()
	for _, align := range []time.Duration{time.Minute, watermark.Never} {
		t.Run(fmt.Sprint("drift=", align), func(t *testing.T) {
			t.Parallel()
			// Partition 1 covers ten times the time with as many records, in half the time.
			most, _ := readApart(t, align, 100*time.Millisecond, 10*time.Millisecond)
			if (most > 500*time.Second) != (align == watermark.Never) {
				t.Errorf("partition 1 was up to %v ahead", most)
			}
		})
	}
}

// Instances that read a backlog equally fast do not wait for each other's reports: in the time between two of them they
// read much more than the drift that is allowed.
func TestAlignmentCostsEqualInstancesNothing(t *testing.T) {
	t.Parallel()
	took := make(map[time.Duration]time.Duration)
	for _, align := range []time.Duration{time.Minute, watermark.Never} {
		_, took[align] = readApart(t, align, time.Second, 5*time.Millisecond)
	}
	if aligned, free := took[time.Minute], took[watermark.Never]; aligned > free*21/20 {
		t.Errorf("it took %v, %v without alignment", aligned, free)
	}
}

// readApart lets two instances read a backlog of 2,000 records each. Those of partition 1 are a second apart and take 5 ms
// each, those of partition 0 are as far apart and take as long as given. It returns how far ahead partition 1 was at most
// and how long it all took.
func readApart(t *testing.T, align, step, cost time.Duration) (most, took time.Duration) {
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		top.Stream[string, string]("in").Timestamps(nil, watermark.Align(align), watermark.IdleAfter(watermark.Never)).
			Peek(func(v string) {
				if v == "zero" {
					stand(cost)
				} else {
					stand(5 * time.Millisecond)
				}
			}).
			KeyBy("by-value", func(v string) string { return v }).
			Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
		nodes := []*node{s.start("a", top, nil, nil), s.start("b", top, nil, nil)}
		mark := func(p int32) time.Duration {
			for _, n := range nodes {
				if m, ok := n.mark("by-value", p); ok {
					return time.Duration(m.W) * time.Millisecond
				}
			}
			return 0
		}
		s.await("a partition for each", func() bool { return len(nodes[0].running()) == 2 && len(nodes[1].running()) == 2 })
		const records = 2000
		var list []rec
		for i := range records {
			list = append(list, at(0, "zero", float64(i)*step.Seconds()+1), at(1, "one", float64(i)+1))
		}
		s.send(list...)
		start := time.Now()
		s.await("the end", func() bool {
			w0, w1 := mark(0), mark(1)
			if w0 > 0 && w0 < (records-100)*step {
				most = max(most, w1-w0)
			}
			return w0 >= (records-1)*step && w1 >= (records-1)*time.Second
		})
		took = time.Since(start)
		s.caughtUp("in")
	})
	return most, took
}

// Partitions that are ahead and wait fill the queues, together and none of them alone. The ones they wait for are fetched
// nevertheless.
func TestAlignmentWithFullQueues(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 4, "out": 1}}, func(t *testing.T, s *scene) {
		// All cover the same time, but two of them have few records in it: they are ahead with as much in the queue.
		// A fetch brings at most 2 MB of a partition.
		big := strings.Repeat("x", 16<<10)
		var list []rec
		for i := range 600 {
			for p := range int32(4) {
				if p < 2 || i%4 == 0 {
					list = append(list, at(p, big, float64(i)+1))
				}
			}
		}
		s.send(list...)
		top := topology.New("app")
		top.Stream[string, string]("in").Timestamps(nil, watermark.Align(5*time.Second), watermark.IdleAfter(watermark.Never)).
			Map(func(v string) string { return v[:1] }).KeyBy("by-value", func(v string) string { return v }).
			Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
		n := s.start("a", top, nil, func(cfg *engine.Config) { cfg.QueueBytes = 3 << 20 })
		s.await("the end", func() bool {
			for p := range int32(4) {
				if w, ok := n.mark("by-value", p); !ok || w.W < 596_000 {
					return false
				}
			}
			return true
		})
		s.caughtUp("in")
	})
}

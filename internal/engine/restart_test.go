package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// L-RESTORE-SKEW: after a restart one partition is heard at once and another only later. The watermark stays where it was
// until the slow one is heard: a partition is not silent because its first fetch has not returned.
func TestLRestoreSkew(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("disk kept=%v", kept), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
				top := func() *topology.Topology { return shuffled(watermark.IdleAfter(30 * time.Second)) }
				n := s.start("a", top(), nil, nil)
				s.send(at(0, "k", 90), at(1, "k", 33))
				n.awaitMark("counts", 0, 32_999)
				s.caughtUp("in", "app-by-value-repartition")
				d := n.stop()
				if !kept {
					d = nil
				}
				n = s.start("a", top(), d, nil)
				n.awaitTasks(3 + len(s.bounds("app-by-value-repartition")) - 1)
				s.send(at(0, "k", 140))
				for range 20 {
					s.pass(100 * time.Millisecond)
					if w, ok := n.mark("counts", 0); ok && w.W != 32_999 {
						t.Fatalf("the watermark is %d, it was 32999", w.W)
					}
				}
				s.send(at(1, "k", 41))
				s.pass(time.Second)
				s.send(at(0, "k", 200), at(1, "k", 200))
				s.saw("out", "k[30,40)=1", "k[40,50)=1", "k[90,100)=1", "k[140,150)=1")
				if late := s.read("app-late"); len(late) != 0 {
					t.Errorf("%d late records", len(late))
				}
			})
		})
	}
}

// W-ALIGN-RESTART: the bounds of a window do not depend on when the process began.
func TestWAlignRestart(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.pass(3 * time.Second)
		n := s.start("a", tens(), nil, nil)
		s.send(at(0, "k", 12))
		s.caughtUp("in")
		n.crash()
		s.pass(4 * time.Second)
		s.start("a", tens(), nil, nil)
		s.send(at(0, "k", 17), at(0, "z", 20.001))
		s.saw("out", "k[10,20)=2")
	})
}

// WM-NO-PARTITION: an instance without partitions contributes nothing and holds nothing back.
func TestWMNoPartition(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		var nodes []*node
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			nodes = append(nodes, s.start(name, shuffled(), nil, nil))
		}
		s.await("four tasks on five instances", func() bool {
			total, empty := 0, 0
			for _, n := range nodes {
				n.mustLive()
				k := len(n.running())
				if total += k; k == 0 {
					empty++
				}
			}
			return total == 4 && empty == 1
		})
		s.send(at(0, "k", 30), at(1, "k", 50))
		s.await("the watermark behind the repartition", func() bool {
			for _, n := range nodes {
				if w, ok := n.mark("counts", 0); ok {
					if w.W > 29_999 {
						t.Fatalf("the watermark is %d", w.W)
					}
					return w.W == 29_999
				}
			}
			return false
		})
		s.pass(5 * time.Second)
		s.shows("out")
	})
}

// WM-IDLE-BACKPRESSURE: a partition that is paused because nobody takes its records is not silent.
func TestWMIdleBackpressure(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		var slow atomic.Bool
		slow.Store(true)
		top := topology.New("app")
		top.Stream[string, string]("in").Timestamps(nil, watermark.IdleAfter(10*time.Second)).
			Peek(func(v string) {
				if v == "slow" && slow.Swap(false) {
					stand(60 * time.Second)
				}
			}).
			KeyBy("by-value", func(v string) string { return v }).
			Window(window.Tumbling(1000 * time.Second)).Count("counts").To("out")
		n := s.start("a", top, nil, func(c *engine.Config) {
			c.Workers, c.QueueBytes, c.TransactionTimeout = 2, 16<<10, 5*time.Minute
		})
		n.awaitTasks(4)
		var recs []rec
		for i := range 100 {
			recs = append(recs, at(0, "slow", float64(i+1)))
		}
		s.send(recs...)
		for i := range 55 {
			s.send(at(1, "fast", float64(450+i)))
			s.pass(time.Second)
			if n.metric("partition_idle", "partition", "0") != 0 {
				t.Fatal("the partition that waits for its worker is shown as silent")
			}
			if w, ok := n.mark("counts", 0); ok && w.W > 100_000 {
				t.Fatalf("the watermark is %d, partition 0 is at 1 s", w.W)
			}
		}
		s.caughtUp("in")
		s.send(at(0, "slow", 2001), at(1, "slow", 2001))
		s.saw("out", "slow[0,1000)=100", "fast[0,1000)=55")
		if late := s.read("app-late"); len(late) != 0 {
			t.Errorf("%d late records", len(late))
		}
	})
}

// TS-INVALID-COMMIT: records without a time go to the topic of late records, and the offset moves past them.
func TestTSInvalidCommit(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := func() *topology.Topology {
			top := topology.New("app")
			top.Stream[string, string]("in").
				Timestamps(func(string) time.Time { return time.Time{} }, watermark.OnMissing(watermark.Late)).
				Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
			return top
		}
		s.feed("in", 0, 5, 1)
		n := s.start("a", top(), nil, nil)
		s.await("offset 5", func() bool { return s.committed("in")[0].Offset == 5 })
		if got := n.metric("late_records_total", "reason", "bad_timestamp"); got != 5 {
			t.Errorf("late_records_total is %v", got)
		}
		if late := s.read("app-late"); len(late) != 5 || late[4].header("tm-src") != "in/0/4" || late[4].header("tm-late-reason") != "bad_timestamp" {
			t.Errorf("late records %v", late)
		}
		n.stop()
		n = s.start("a", top(), nil, nil)
		n.awaitTasks(1)
		s.pass(2 * time.Second)
		if got := n.metric("records_total"); got != 0 {
			t.Errorf("%v records were read again", got)
		}
	})
}

// TS-REPARTITION: the time of an event is taken once, at the source, and travels through the repartition topic.
func TestTSRepartition(t *testing.T) {
	t.Parallel()
	type order struct {
		T      int64
		City   string
		Amount int64
	}
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		var calls atomic.Int64
		top := topology.New("app")
		top.Stream[string, order]("in").
			Timestamps(func(o order) time.Time { calls.Add(1); return time.UnixMilli(o.T * 1000) }).
			KeyBy("by-city", func(o order) string { return o.City }).
			Map(func(o order) int64 { return o.Amount }).
			Window(window.Tumbling(10*time.Second)).Sum("sums", func(n int64) int64 { return n }).To("out")
		s.start("a", top, nil, nil)
		for _, v := range []string{`{"T":7,"City":"X","Amount":5}`, `{"T":8,"City":"X","Amount":2}`, `{"T":30,"City":"Y","Amount":1}`} {
			s.send(rec{topic: "in", key: []byte("k"), value: []byte(v), ms: 999_000})
		}
		s.saw("out", "X[0,10)=7")
		if calls.Load() != 3 {
			t.Errorf("the time was asked for %d times", calls.Load())
		}
		for _, r := range s.read("app-by-city-repartition") {
			if r.header(watermark.ControlHeader) == "" && r.ms != 7000 && r.ms != 8000 && r.ms != 30_000 {
				t.Errorf("a record in between has the time %d", r.ms)
			}
		}
	})
}

// W-LAG-ONE-PANE: windows do not care how fast the input is read, or how far behind the wall clock it is.
func TestWLagOnePane(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []int{40, 320} {
		t.Run(fmt.Sprintf("%d per second", perSecond), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				top := topology.New("app")
				top.Stream[string, string]("in").Timestamps(nil, watermark.OutOfOrderness(time.Second)).
					Window(window.Tumbling(time.Minute)).Count("counts").To("out")
				s.start("a", top, nil, nil)
				const old = -600.0 // the minute began ten minutes before 1970 did
				for i := 0; i < 320; i += perSecond {
					var recs []rec
					for j := range perSecond {
						recs = append(recs, at(0, "k", old+float64(i+j)/320*60))
					}
					s.send(recs...)
					s.pass(time.Second)
				}
				s.send(at(0, "k", old+62))
				s.saw("out", "k[-600,-540)=320")
				s.pass(2 * time.Minute)
				s.shows("out", "k[-600,-540)=320")
			})
		})
	}
}

// A restart neither lowers a watermark nor raises it by itself, whatever it restores from.
func TestWatermarkAcrossRestart(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(), nil, nil)
		now := 0
		s.beat(&now, 3, 0, 1)
		for life := range 5 {
			s.beat(&now, 2, 0, 1)
			s.caughtUp("in")
			n.awaitMark("counts", 0, int64(now)*1000-1)
			s.pass(500 * time.Millisecond) // committed
			w, _ := n.mark("counts", 0)
			d := storage(nil)
			if life%2 == 0 {
				d = n.stop()
			} else {
				n.crash()
			}
			n = s.start("a", shuffled(), d, nil)
			s.await("the watermark again", func() bool { _, ok := n.mark("counts", 0); return ok })
			if again, _ := n.mark("counts", 0); again.W != w.W {
				t.Errorf("the watermark was %d and is %d", w.W, again.W)
			}
		}
	})
}

// A partition that was silent when the app stopped is silent again once the broker has confirmed it, without the time-out.
func TestIdleAcrossRestart(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		top := func() *topology.Topology { return shuffled(watermark.IdleAfter(time.Minute)) }
		n := s.start("a", top(), nil, nil)
		s.send(at(0, "k", 1), at(1, "k", 1))
		s.await("silence", func() bool { return n.metric("partition_idle", "partition", "1") == 1 })
		s.pass(time.Second)
		n.stop()
		n = s.start("a", top(), nil, nil)
		n.awaitTasks(4)
		s.send(at(0, "k", 21))
		began := time.Now()
		s.saw("out", "k[0,10)=2")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		// What came while nobody looked is no silence.
		n.stop()
		end := s.open(at(1, "k", 22))
		end(kgo.TryCommit)
		n = s.start("a", top(), nil, nil)
		n.awaitTasks(4)
		s.send(at(0, "k", 41))
		s.pass(10 * time.Second)
		s.shows("out", "k[0,10)=2")
	})
}

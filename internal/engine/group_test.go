package engine_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// F20: instances join and leave in a row; progress continues, nothing is lost, and after 50 rebalances
// goroutines and open files are back where they began.
func TestF20RebalanceStorm(t *testing.T) {
	simulate(t, embedded.Options{Topics: map[string]int{"in": 4, "out": 4}}, func(t *testing.T, s *scene) {
		next := 0
		a := s.start("a", counting(), nil, nil)
		s.load(&next, time.Second)
		a.awaitTasks(4)
		s.pass(10 * time.Second)
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		restores := len(a.restored())
		for i := 0; s.broker.Cluster().GroupInfo("app").Epoch <= 50; i++ { // a join and a leave each
			before := a.commitCount()
			b := s.start(fmt.Sprint("b", i%3), counting(), nil, nil)
			s.load(&next, 200*time.Millisecond)
			b.awaitTasks(2)
			s.load(&next, 200*time.Millisecond)
			if i%5 == 4 {
				b.crash()
				s.pass(dead)
			} else {
				b.stop()
			}
			if a.commitCount() == before {
				t.Errorf("round %d: no commit", i)
			}
		}
		a.awaitTasks(4)
		s.counts("out", next, 10)
		for _, n := range s.nodes[1:] {
			<-n.done
		}
		s.pass(30 * time.Second) // connections and timers of the last ones
		if got := runtime.NumGoroutine(); got > goroutines+5 {
			t.Errorf("%d goroutines, %d before", got, goroutines)
		}
		if got := openFiles(t); got > files {
			t.Errorf("%d open files, %d before", got, files)
		}
		t.Logf("%d restores in 50 rebalances", len(a.restored())-restores)
	})
}

// openFiles counts the descriptors of the process, where the system tells.
func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}

// F21: user code is slow. What is fetched stays within the queue's bound, partitions pause, and the member
// stays in the group at its generation.
func TestF21SlowCode(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const queue = 1 << 20
		var slow atomic.Bool
		slow.Store(true)
		top := topology.New("app")
		top.Stream[string, string]("in").Peek(func(string) {
			if slow.Load() {
				stand(time.Second)
			}
		}).Map(func(v string) string { return strings.TrimLeft(v, " ") }).To("out")
		n := s.start("a", top, nil, func(c *engine.Config) { c.QueueBytes = queue })
		n.awaitTasks(1)
		generation := s.broker.Cluster().GroupInfo("app").Epoch
		const total = 5000
		for i := 0; i < total; i += 1000 {
			var recs []rec
			for j := i; j < i+1000; j++ {
				recs = append(recs, rec{topic: "in", key: []byte("k"), value: fmt.Appendf(nil, "%1000d", j)})
			}
			s.send(recs...)
		}
		worst := 0.0
		for range 60 {
			s.pass(time.Second)
			worst = max(worst, n.metric("queued_bytes"))
		}
		// One fetch may come on top: the bound is looked at between fetches.
		if worst == 0 || worst > 2*queue+(2<<20) {
			t.Errorf("%v bytes were queued", worst)
		}
		if g := s.broker.Cluster().GroupInfo("app"); g.Epoch != generation {
			t.Errorf("generation %d, was %d", g.Epoch, generation)
		}
		slow.Store(false)
		s.copies("out", total)
	})
}

// F30: an instance is told to stop at each step of the commit. It commits what it has processed, lets the group
// know, and returns; told twice, it does not mind.
func TestF30Stop(t *testing.T) {
	t.Parallel()
	for _, at := range []engine.Point{engine.K0, engine.K1, engine.K2, engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7, engine.K8, engine.K9} {
		t.Run(string(at), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 200, 10)
				n := s.prepare("a", counting(), nil, func(c *engine.Config) { c.StateOptions.LayerRecords = 1 })
				n.onPoint(func(p engine.Point) {
					if p == at {
						n.cancel()
						n.cancel()
					}
				})
				n.run()
				begin := time.Now()
				<-n.done
				d := n.stop()
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("stopped after %v", took)
				}
				if g := s.broker.Cluster().GroupInfo("app"); g != nil && len(g.Members) != 0 {
					t.Errorf("still a member: %+v", g.Members)
				}
				done := len(s.read("out"))
				var offsets int64
				for _, c := range s.committed("in") {
					offsets += max(c.Offset, 0)
				}
				if int64(done) != offsets || n.e.Processed() > 0 && done == 0 {
					t.Errorf("%d results, committed to %d, processed %d", done, offsets, n.e.Processed())
				}
				for tp, b := range s.bounds("out") {
					if b.LastStable != b.HighWatermark {
						t.Errorf("%v is left open", tp)
					}
				}
				s.start("a", counting(), d, nil)
				s.counts("out", 200, 10)
			})
		})
	}
}

// F30: the broker cannot be reached when the instance is told to stop: Run returns within its limit.
func TestF30Deadline(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 20, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 20, 10)
		n.freeze(true)
		s.feed("in", 20, 20, 10)
		begin := time.Now()
		n.cancel()
		<-n.done
		n.judged = true
		if took := time.Since(begin); took > 60*time.Second {
			t.Errorf("stopped after %v", took)
		}
		s.start("b", counting(), nil, nil)
		s.counts("out", 40, 10)
	})
}

// Static membership: a restart within the session gets its tasks back without a rebalance; one that comes back
// with another state is heard all the same.
func TestStaticMembership(t *testing.T) {
	t.Parallel()
	static := func(id string) func(*engine.Config) {
		return func(c *engine.Config) { c.Static, c.SessionTimeout = id, 30*time.Second }
	}
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		a := s.start("a", counting(), nil, static("one"))
		b := s.start("b", counting(), nil, static("two"))
		a.awaitTasks(1)
		b.awaitTasks(1)
		s.feed("in", 0, 20, 10)
		s.counts("out", 20, 10)
		// The first return of the leader makes the in-process broker rebalance once; a real one does not.
		a.crash()
		a = s.start("a", counting(), a.remains(), static("one"))
		a.awaitTasks(1)
		s.pass(2 * time.Second)
		generation := s.broker.Cluster().GroupInfo("app").Epoch
		for range 2 {
			a.crash()
			a = s.start("a", counting(), a.remains(), static("one"))
			a.awaitTasks(1)
		}
		d := a.stop()
		a = s.start("a", counting(), d, static("one"))
		a.awaitTasks(1)
		if g := s.broker.Cluster().GroupInfo("app"); g.Epoch != generation {
			t.Errorf("generation %d, was %d: a restart made a rebalance", g.Epoch, generation)
		}
		s.feed("in", 20, 20, 10)
		s.counts("out", 40, 10)
		d = a.stop()
		a = s.start("a", countingMore(), d, static("one"))
		s.await("a says that it waits", func() bool { return a.said("waiting without tasks") > 0 && len(a.running()) == 0 })
		b.awaitTasks(2)
		s.feed("in", 40, 20, 10)
		s.counts("out", 60, 10)
	})
}

// The order of step 4: the lease is looked at after the group metadata was read. An instance that is held up
// between the two until its tasks are another's commits nothing of them.
func TestLeaseOrder(t *testing.T) {
	t.Parallel()
	bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 20, 10)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 20, 10)
		var held atomic.Bool
		a.onPoint(func(p engine.Point) {
			if p == engine.K4b && held.CompareAndSwap(false, true) {
				stand(1500 * time.Millisecond) // longer than the revoke budget, shorter than the session
			}
		})
		s.feed("in", 20, 20, 10)
		s.await("a is held up", held.Load)
		b := s.start("b", counting(), nil, nil)
		b.awaitTasks(1)
		s.feed("in", 40, 20, 10)
		s.counts("out", 60, 10)
		if a.metric("transaction_aborts_total") == 0 {
			t.Error("nothing was aborted: the test shows nothing")
		}
	})
}

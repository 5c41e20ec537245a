package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// F1: kill -9 at the numbered steps, once at the first commit and once later, with and without the disk.
func TestF1Kill(t *testing.T) {
	t.Parallel()
	for _, at := range []engine.Point{engine.K0, engine.K1, engine.K2, engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7, engine.K8, engine.K9} {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s kept=%v", at, kept), func(t *testing.T) {
				protocols := bothProtocols
				if !kept { // what differs between the protocols does not depend on the disk
					protocols = func(t *testing.T, topics map[string]int, script func(t *testing.T, s *scene)) {
						simulate(t, embedded.Options{Topics: topics}, script)
					}
				}
				protocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
					every := func(c *engine.Config) { c.StateOptions.LayerRecords = 1 }
					s.feed("in", 0, 200, 10)
					n := s.prepare("a", counting(), nil, every)
					n.dieAt(at, 1)
					for i := 1; i <= 2; i++ {
						n.run()
						s.await("the crash", n.dead)
						d := n.remains()
						if !kept {
							d = nil
						}
						n = s.prepare("a", counting(), d, every)
						if i == 1 {
							n.dieAt(at, 1)
						}
						s.feed("in", 200*i, 200, 10)
						if at == engine.K0 {
							break // a point of first commits only
						}
					}
					n.onPoint(nil)
					n.run()
					total := map[bool]int{true: 400, false: 600}[at == engine.K0]
					s.counts("out", total, 10)
					s.caughtUp("in")
				})
			})
		}
	}
}

// load feeds records for a time, spread evenly.
func (s *scene) load(next *int, d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); s.pass(50 * time.Millisecond) {
		s.feed("in", *next, 10, 10)
		*next += 10
	}
}

// F3: leaders move under load, brokers leave and come back, and the broker restarts on its data: Run goes on.
func TestF3Brokers(t *testing.T) {
	t.Parallel()
	t.Run("leaders move", func(t *testing.T) {
		simulate(t, embedded.Options{Brokers: 3, Topics: map[string]int{"in": 3, "out": 3}}, func(t *testing.T, s *scene) {
			next := 0
			s.start("a", keyed(), nil, nil)
			s.start("b", keyed(), nil, nil)
			for range 15 {
				s.broker.Cluster().ShufflePartitionLeaders()
				s.load(&next, 200*time.Millisecond)
			}
			s.counts("out", next, 10)
			s.caughtUp("in")
		})
	})
	t.Run("restart", func(t *testing.T) {
		o := embedded.Options{Topics: map[string]int{"in": 2, "out": 2}, DataDir: t.TempDir(), Port: 9092}
		simulate(t, o, func(t *testing.T, s *scene) {
			next := 0
			n := s.start("a", counting(), nil, nil)
			for range 3 {
				s.load(&next, 500*time.Millisecond)
				s.broker.Close()
				s.pass(500 * time.Millisecond)
				o.ListenFn = s.net.Listen
				b, err := embedded.Start(o)
				if err != nil {
					t.Fatal(err)
				}
				s.broker = b
				at := time.Now()
				s.counts("out", next, 10)
				if gap := time.Since(at); gap > 10*time.Second {
					t.Errorf("it took %v to go on", gap)
				}
				n.mustLive()
			}
		})
	})
}

// F4: the coordinators of group and transactions move, and answer for a while that they are not it, that they
// load, or that another request is in the way.
func TestF4Coordinators(t *testing.T) {
	t.Parallel()
	keys := []kmsg.Key{kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.AddOffsetsToTxn, kmsg.AddPartitionsToTxn, kmsg.OffsetFetch, kmsg.InitProducerID, kmsg.Heartbeat}
	errs := []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.ConcurrentTransactions}
	for version := 2; version >= 1; version-- {
		t.Run(fmt.Sprintf("TV%d", version), func(t *testing.T) {
			o := embedded.Options{Brokers: 3, Topics: map[string]int{"in": 2, "out": 2}, TransactionVersion: version % 2}
			simulate(t, o, func(t *testing.T, s *scene) {
				next := 0
				s.start("a", counting(), nil, nil)
				s.start("b", counting(), nil, nil)
				rng := rand.New(rand.NewPCG(4, uint64(version)))
				for range 20 {
					switch k := keys[rng.IntN(len(keys))]; {
					case rng.IntN(3) == 0:
						s.broker.Cluster().RehashCoordinators()
					default:
						err := errs[rng.IntN(len(errs))]
						if err == kerr.ConcurrentTransactions && (k == kmsg.OffsetFetch || k == kmsg.Heartbeat) {
							err = kerr.NotCoordinator
						}
						s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{k}, Err: err, Count: 1 + rng.IntN(3)})
					}
					s.load(&next, 150*time.Millisecond)
				}
				s.counts("out", next, 10)
				s.caughtUp("in")
			})
		})
	}
}

// F5: requests of the transaction are late by up to seconds; and the EndTxn of a dead instance arrives after
// its successor has begun.
func TestF5Late(t *testing.T) {
	t.Parallel()
	t.Run("delays", func(t *testing.T) {
		bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
			next := 0
			n := s.start("a", counting(), nil, nil)
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(5, 5))
			s.net.Intercept(func(r embedded.Request) embedded.Verdict {
				mu.Lock()
				defer mu.Unlock()
				late := r.Key == kmsg.EndTxn.Int16() || r.Key == kmsg.Produce.Int16() || r.Key == kmsg.TxnOffsetCommit.Int16()
				if r.Client != n.client || !late || rng.IntN(4) > 0 {
					return embedded.Verdict{}
				}
				d := time.Duration(rng.IntN(3000)) * time.Millisecond
				if rng.IntN(2) == 0 {
					return embedded.Verdict{Delay: d}
				}
				return embedded.Verdict{ReplyDelay: d}
			})
			s.load(&next, 10*time.Second)
			s.net.Intercept(nil)
			s.counts("out", next, 10)
			s.caughtUp("in")
		})
	})
	t.Run("of a dead one", func(t *testing.T) {
		bothProtocols(t, map[string]int{"in": 1, "out": 1}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			a := s.prepare("a", counting(), nil, nil)
			a.dieAt(engine.K5, 1)
			a.run()
			s.await("the crash", a.dead)
			adm := kadm.NewClient(s.cl)
			have, err := adm.DescribeTransactions(t.Context(), "app-a-0")
			if err != nil || have["app-a-0"].State != "Ongoing" {
				t.Fatalf("%v %v", have, err)
			}
			s.start("a", counting(), a.remains(), nil)
			s.counts("out", 10, 5)
			for _, commit := range []bool{true, false} {
				end := kmsg.NewPtrEndTxnRequest()
				end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "app-a-0", have["app-a-0"].ProducerID, have["app-a-0"].ProducerEpoch, commit
				resp, err := end.RequestWith(t.Context(), s.cl)
				if err != nil || resp.ErrorCode == 0 {
					t.Errorf("the late EndTxn was answered %v %v", resp, err)
				}
			}
			s.feed("in", 10, 10, 5)
			s.counts("out", 20, 5)
		})
	})
}

// F6: the open transaction of a dead instance does not hold readers up until its time-out: whoever takes over
// ends it at once.
func TestF6HangingTransaction(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		long := func(c *engine.Config) { c.TransactionTimeout = 10 * time.Minute }
		a := s.start("a", counting(), nil, long)
		b := s.start("b", counting(), nil, long)
		a.awaitTasks(1)
		b.awaitTasks(1)
		a.dieAt(engine.K5, 1)
		s.feed("in", 0, 20, 10)
		<-a.done
		at := time.Now()
		s.counts("out", 20, 10)
		if took := time.Since(at); took > 2*dead {
			t.Errorf("results came after %v", took)
		}
		for tp, bd := range s.bounds("out") {
			if bd.LastStable != bd.HighWatermark {
				t.Errorf("%v is held up at %d of %d", tp, bd.LastStable, bd.HighWatermark)
			}
		}
		if b.said("fencing instances that have left") == 0 {
			t.Error("nobody was fenced")
		}
	})
}

// F6 for an instance that starts when nobody is left: it knows no former members, but finds the open transaction.
func TestF6NobodyLeft(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		long := func(c *engine.Config) { c.TransactionTimeout = 10 * time.Minute }
		s.feed("in", 0, 20, 10)
		a := s.start("a", counting(), nil, long)
		s.counts("out", 20, 10)
		a.dieAt(engine.K5, 1)
		s.feed("in", 20, 20, 10)
		<-a.done
		s.pass(dead)
		at := time.Now()
		b := s.start("b", counting(), nil, long)
		s.counts("out", 40, 10)
		if took := time.Since(at); took > 2*dead || b.said("fencing instances that are not in the group") == 0 {
			t.Errorf("results came after %v", took)
		}
	})
}

// F29: user code takes longer than the transaction time-out. The transaction is aborted by the broker and its
// records are processed again; Run goes on. At half of the time-out there is a warning.
func TestF29TransactionTimeout(t *testing.T) {
	t.Parallel()
	bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
		var slow atomic.Int32
		top := topology.New("app")
		top.Stream[string, string]("in").Peek(func(v string) {
			if n, err := strconv.Atoi(v); err == nil && n%50 == 25 && slow.Add(1) <= 2 {
				stand(12 * time.Second)
			}
		}).Count("counts", topology.EveryUpdate()).To("out")
		n := s.start("a", top, nil, nil)
		n.awaitTasks(2)
		s.feed("in", 0, 60, 10)
		s.counts("out", 60, 10)
		s.feed("in", 60, 60, 10)
		s.counts("out", 120, 10)
		if n.metric("transaction_aborts_total") == 0 {
			t.Error("no transaction ran out of time: the test shows nothing")
		}
		if got := n.said("transaction is open for half of its time-out"); got == 0 || got > 2 {
			t.Errorf("%d warnings at half of the time-out", got)
		}
	})
}

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// bothProtocols runs a script under transaction.version 2 and 1.
func bothProtocols(t *testing.T, topics map[string]int, script func(t *testing.T, s *scene)) {
	t.Helper()
	for version := 2; version >= 1; version-- {
		t.Run(fmt.Sprintf("TV%d", version), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: topics, TransactionVersion: version % 2}, script)
		})
	}
}

// E-CKPT-CLOSE: a restore that is closed in its middle keeps what it has, and the next one goes on there.
func TestECkptClose(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := func() *topology.Topology {
			top := topology.New("app")
			top.Stream[string, []byte]("in").Reduce("rows", func(_, v []byte) []byte { return v })
			return top
		}
		rng := rand.NewChaCha8([32]byte{1})
		want := make(map[string]string)
		var recs []rec
		for i := range 3000 {
			v := make([]byte, 2000) // incompressible, so that the changelog is read in several answers
			rng.Read(v)
			k := fmt.Sprint("k", i)
			want[k] = string(v)
			recs = append(recs, rec{topic: "in", key: []byte(k), value: v})
		}
		s.send(recs...)
		n := s.start("a", top(), nil, nil)
		s.caughtUp("in")
		n.stop()
		n = s.prepare("a", top(), nil, nil)
		n.onPoint(func(p engine.Point) {
			if p == engine.K15 {
				n.cancel()
			}
		})
		n.run()
		<-n.done
		d := n.stop()
		id := processor.TaskID{Sub: "rows"}
		db, err := d.open(id)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := store.ReadProgress(db)
		if err != nil || blob == nil {
			t.Fatalf("progress on disk: %v %v", blob, err)
		}
		p, err := changelog.DecodeProgress(blob)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := p.End("rows")
		if at < 1000 || at >= 3000 || p.Seq != 0 {
			t.Errorf("stored position %d of commit %d", at, p.Seq)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		n = s.start("a", top(), d, nil)
		n.awaitTasks(1)
		r := n.restored()
		if len(r) != 1 || r[0].Source != "local" || r[0].Records != 3000-at {
			t.Errorf("second restore: %+v, position was %d", r, at)
		}
		n.stop()
		plan, err := top().Build()
		if err != nil {
			t.Fatal(err)
		}
		got := rows(t, d, id, plan.Subs[0].Stores)
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("row %s differs", k)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
	})
}

// E-DIRTY-LOCAL: what a transaction wrote that never ended is nowhere to be seen after kill -9, neither on the
// disk nor in results.
func TestEDirtyLocal(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 5, 1)
		n := s.start("a", counting(), nil, func(c *engine.Config) { c.StateOptions.LayerRecords = 1 })
		s.counts("out", 5, 1)
		s.caughtUp("in")
		n.dieAt(engine.K5, 1)
		s.feed("in", 5, 4, 1)
		<-n.done
		plan, err := counting().Build()
		if err != nil {
			t.Fatal(err)
		}
		d := n.remains()
		got := rows(t, d, processor.TaskID{Sub: "counts"}, plan.Subs[0].Stores)
		if v := got["k0"]; len(v) != 8 || v[7] != 5 {
			t.Errorf("on disk: %q", got)
		}
		s.start("a", counting(), d, nil)
		s.counts("out", 9, 1)
	})
}

// E-END-UNKNOWN: EndTxn is answered once with UNKNOWN_SERVER_ERROR, (a) after the commit, (b) without one.
func TestEEndUnknown(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{true, false} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
				n := s.start("a", counting(), nil, nil)
				n.awaitTasks(2)
				init := s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
				var calls atomic.Int32
				cluster := s.broker.Cluster()
				cluster.ControlKey(kmsg.EndTxn.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
					if calls.Add(1) != 1 {
						return nil, nil, false
					}
					if after {
						cluster.SleepControl(func() {
							end := *req.(*kmsg.EndTxnRequest)
							if resp, err := end.RequestWith(s.t.Context(), s.cl); err != nil || resp.ErrorCode != 0 {
								t.Error(err, resp)
							}
						})
					}
					resp := req.ResponseKind().(*kmsg.EndTxnResponse)
					resp.ErrorCode = kerr.UnknownServerError.Code
					return resp, nil, true
				})
				s.feed("in", 0, 100, 10)
				s.counts("out", 100, 10)
				s.feed("in", 100, 10, 10)
				s.counts("out", 110, 10)
				s.caughtUp("in")
				aborts := map[bool]float64{true: 0, false: 1}[after]
				if n.said("transaction outcome unknown") != 1 || n.metric("transaction_aborts_total") != aborts || init.Hits() == 0 {
					t.Errorf("unknown outcomes: %d, aborts: %v, new epochs: %d", n.said("transaction outcome unknown"), n.metric("transaction_aborts_total"), init.Hits())
				}
			})
		})
	}
}

// E-END-HANG: no answer to EndTxn ever comes. Run returns within its limit all the same, and the broker ends
// the transaction in time: nothing stays open. (A transaction without a task cannot come about: without timers
// nothing writes before there is one.)
func TestEEndHang(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.prepare("a", counting(), nil, nil)
		hang := make(chan struct{})
		n.onPoint(func(p engine.Point) {
			if p == engine.K5 {
				s.net.Freeze(n.client, true)
				select {
				case <-hang:
				default:
					close(hang)
				}
			}
		})
		n.run()
		s.feed("in", 0, 10, 5)
		<-hang
		at := time.Now()
		n.cancel()
		<-n.done
		n.judged = true
		if took := time.Since(at); took > 40*time.Second {
			t.Errorf("Run took %v to return", took)
		}
		s.pass(10 * time.Second)
		for tp, b := range s.bounds("out") {
			if b.LastStable != b.HighWatermark {
				t.Errorf("%v is held up at %d of %d", tp, b.LastStable, b.HighWatermark)
			}
		}
		s.start("b", counting(), nil, nil)
		s.counts("out", 10, 5)
	})
}

// E-ABORT-REWIND: a transaction is aborted while a rebalance takes nothing away. The next record is the one
// behind the last commit, whatever had been fetched.
func TestEAbortRewind(t *testing.T) {
	t.Parallel()
	bothProtocols(t, map[string]int{"in": 1, "out": 1}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 730, 10)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 730, 10)
		s.caughtUp("in")
		fault := s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: "in", Err: kerr.InvalidCommitOffsetSize, Count: 2})
		b := s.start("b", countingMore(), nil, nil) // waits: a rebalance without a loss
		s.feed("in", 730, 12, 10)
		s.await("b waits", func() bool { return b.said("waiting without tasks") > 0 })
		s.feed("in", 742, 58, 10)
		s.counts("out", 800, 10)
		if fault.Hits() != 2 || a.metric("transaction_aborts_total") != 2 {
			t.Errorf("%d errors, %v aborts", fault.Hits(), a.metric("transaction_aborts_total"))
		}
	})
}

// E-ABORT-ONCE: a rebalance that ended before a transaction began costs none.
func TestEAbortOnce(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 10, 10)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 10, 10)
		s.start("b", counting(), nil, nil).awaitTasks(1)
		a.awaitTasks(1)
		commits := a.commitCount()
		for i := 1; i <= 3; i++ {
			s.feed("in", 10*i, 10, 10)
			s.pass(time.Second)
			if got := a.commitCount(); got <= commits {
				t.Errorf("no commit within a second")
			}
			commits = a.commitCount()
		}
		s.counts("out", 40, 10)
		for _, n := range s.nodes {
			if got := n.metric("transaction_aborts_total"); got != 0 {
				t.Errorf("%v aborts on %s", got, n.client)
			}
		}
	})
}

// fence takes an instance's transactional id away from it, as a successor does.
func (s *scene) fence(ids ...string) {
	s.t.Helper()
	if err := changelog.Fence(s.t.Context(), s.cl, clock.Real(), ids, time.Minute); err != nil {
		s.t.Fatal(err)
	}
}

// E-FENCE-PENDING: the producer is fenced and, before anybody has noticed, the assignment changes.
func TestEFencePending(t *testing.T) {
	t.Parallel()
	bothProtocols(t, map[string]int{"in": 4, "out": 4}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 40, 20)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 40, 20)
		for round := range 3 {
			s.feed("in", 40+60*round, 20, 20)
			s.fence("app-a-0")
			s.feed("in", 60+60*round, 20, 20)
			b := s.start("b", counting(), nil, nil)
			b.awaitTasks(2)
			s.fence("app-a-0", "app-b-0")
			s.feed("in", 80+60*round, 20, 20)
			s.counts("out", 100+60*round, 20)
			b.stop()
			a.awaitTasks(4)
		}
		if a.metric("transaction_aborts_total") == 0 {
			t.Error("no transaction was fenced: the test shows nothing")
		}
	})
}

// E-PID-EXPIRED: the broker has forgotten the transactional id of an idle instance.
func TestEPidExpired(t *testing.T) {
	t.Parallel()
	for version := 2; version >= 1; version-- {
		t.Run(fmt.Sprintf("TV%d", version), func(t *testing.T) {
			o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, TransactionVersion: version % 2,
				Configs: map[string]string{"transactional.id.expiration.ms": "20000"}}
			simulate(t, o, func(t *testing.T, s *scene) {
				s.feed("in", 0, 10, 5)
				n := s.start("a", counting(), nil, nil)
				s.counts("out", 10, 5)
				for i := 1; i <= 3; i++ {
					s.pass(25 * time.Second)
					s.feed("in", 10*i, 10, 5)
					s.counts("out", 10*i+10, 5)
				}
				if n.metric("transaction_aborts_total") == 0 {
					t.Error("the id was not forgotten: the test shows nothing")
				}
			})
		})
	}
}

// E-ASYNC-SEND: at-least-once; an output is refused. The commit does not go past what was sent before, the
// error surfaces, and after a restart the rest appears.
func TestEAsyncSend(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		alo := func(c *engine.Config) { c.Guarantee = engine.AtLeastOnce }
		s.feed("in", 0, 2, 1)
		n := s.start("a", copying(), nil, alo)
		s.caughtUp("in")
		fault := s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: kerr.InvalidRecord, Count: -1})
		s.feed("in", 2, 3, 1)
		s.await("the end", n.ended)
		n.judged = true
		if n.err == nil || !contains(n.err.Error(), "in/0 offset 2", "out/0") {
			t.Errorf("ended: %v", n.err)
		}
		if got := s.committed("in")[0].Offset; got != 2 {
			t.Errorf("committed to %d", got)
		}
		fault.Remove()
		s.start("a", copying(), n.disk, alo)
		s.copies("out", 5)
		s.caughtUp("in")
	})
}

// E-COMMIT-TIMEOUT: for a while (a) no request that commits arrives, or (b) none is answered.
func TestECommitTimeout(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.TxnOffsetCommit, kmsg.EndTxn} {
		for _, reply := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v reply=%v", key.Name(), reply), func(t *testing.T) {
				bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
					s.feed("in", 0, 20, 10)
					n := s.start("a", counting(), nil, nil)
					s.counts("out", 20, 10)
					var cut atomic.Int32
					s.net.Intercept(func(r embedded.Request) embedded.Verdict {
						if r.Client != n.client || r.Key != key.Int16() {
							return embedded.Verdict{}
						}
						cut.Add(1)
						return embedded.Verdict{CutRequest: !reply, CutReply: reply}
					})
					s.feed("in", 20, 20, 10)
					s.pass(4 * time.Second)
					s.net.Intercept(nil)
					s.counts("out", 40, 10)
					s.feed("in", 40, 20, 10)
					s.counts("out", 60, 10)
					s.caughtUp("in")
					if cut.Load() == 0 {
						t.Error("nothing was cut")
					}
				})
			})
		}
	}
}

// E-EPOCH-ROLL: the epoch counter comes to its end; the broker gives a new producer id, and each recovery takes
// it over.
func TestEEpochRoll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first int64
	o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, DataDir: dir}
	simulate(t, o, func(t *testing.T, s *scene) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = kmsg.StringPtr("app-a-0")
		req.TransactionTimeoutMillis = 5000
		resp, err := req.RequestWith(t.Context(), s.cl)
		if err != nil || resp.ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		first = resp.ProducerID
	})
	entry, err := json.Marshal(map[string]any{"type": "init", "pid": first, "epoch": 32763, "txid": "app-a-0", "timeout": 5000})
	if err != nil {
		t.Fatal(err)
	}
	appendEntry(t, filepath.Join(dir, "pids.log"), entry)
	simulate(t, o, func(t *testing.T, s *scene) {
		ids := make(map[int64]bool)
		var n *node
		for i := range 4 {
			var d storage
			if n != nil {
				d = n.remains()
			}
			n = s.start("a", counting(), d, nil)
			n.awaitTasks(1)
			s.feed("in", 10*i, 10, 5)
			s.counts("out", 10*i+10, 5)
			have, err := kadm.NewClient(s.cl).DescribeTransactions(t.Context(), "app-a-0")
			if err != nil {
				t.Fatal(err)
			}
			ids[have["app-a-0"].ProducerID] = true
			n.crash()
			<-n.done
		}
		if !ids[first] || len(ids) < 2 {
			t.Errorf("producer ids %v, the first one was %d", ids, first)
		}
	})
}

// appendEntry adds an entry to a log of the in-process broker: length, checksum, version, data.
func appendEntry(t *testing.T, path string, data []byte) {
	t.Helper()
	b := make([]byte, 10, 10+len(data))
	b = append(b, data...)
	binary.LittleEndian.PutUint32(b, uint32(2+len(data)))
	binary.LittleEndian.PutUint16(b[8:], 1)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], crc32.MakeTable(crc32.Castagnoli)))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// E-ZOMBIE, F2: an instance stands still inside a transaction, at each step of the commit, until long after its
// session; another one takes over. Awake again, its writes are refused and it comes back to the group.
func TestEZombie(t *testing.T) {
	t.Parallel()
	for _, at := range []engine.Point{engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7} {
		t.Run(string(at), func(t *testing.T) {
			bothProtocols(t, map[string]int{"in": 2, "out": 2}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 20, 10)
				a := s.start("a", counting(), nil, nil)
				s.counts("out", 20, 10)
				var stopped atomic.Bool
				asleep := make(chan struct{})
				a.onPoint(func(p engine.Point) {
					if p == at && stopped.CompareAndSwap(false, true) {
						a.freeze(true)
						close(asleep)
						stand(8 * time.Second)
					}
				})
				s.feed("in", 20, 20, 10)
				<-asleep
				b := s.start("b", counting(), nil, nil)
				b.awaitTasks(2)
				s.feed("in", 40, 20, 10)
				s.counts("out", 60, 10)
				aborts := b.metric("transaction_aborts_total")
				s.pass(4 * time.Second)
				a.freeze(false)
				s.feed("in", 60, 20, 10)
				s.await("a is back", func() bool { a.mustLive(); return len(a.running()) == 1 && len(b.running()) == 1 })
				s.feed("in", 80, 20, 10)
				s.counts("out", 100, 10)
				s.caughtUp("in")
				if got := b.metric("transaction_aborts_total") - aborts; got > 1 {
					t.Errorf("the successor had %v aborts", got)
				}
			})
		})
	}
}

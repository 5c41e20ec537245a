package changelog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
)

var compact = map[string]string{"cleanup.policy": "compact"}

// C-MARKER-END
func TestReadEndsOnControlRecord(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, compact)
		p := c.client("p", kgo.TransactionalID("p"))
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprintf("%d:k%d=v", i, i))
		}
		c.transact(p, true, "log", 0, "k0=v", "k1=v", "k2=v", "k3=v", "k4=v", "k5=v", "k6=v", "k7=v", "k8=v", "k9=v")
		if b := c.bounds("log", 0); b != (changelog.Bounds{HighWatermark: 11, LastStable: 11}) {
			t.Fatalf("bounds %+v", b)
		}
		r := c.reader()
		c.expect(r, "log", 0, want...)
		c.expect(r, "log", 10) // only the marker is left
		c.expect(r, "log", 11)
	})
}

// C-MARKER-END, variant: what is left below the end was removed by compaction.
func TestReadEndsOnCompactedTail(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, compact)
		c.put(c.admin, "log", 0, "a=1", "b=1")
		c.onFetch(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			if req.Topics[0].Partitions[0].FetchOffset < 2 {
				return nil
			}
			return emptyAnswer(req, 9, 9, nil)
		})
		got, pos, err := c.read(c.reader(), changelog.Partition{Topic: "log", Target: 9})
		if err != nil || pos != 9 || len(got) != 2 {
			t.Errorf("position %d, records %v, %v", pos, got, err)
		}
	})
}

// An aborted transaction at the end moves the position and shows nothing.
func TestReadEndsOnAbortedTail(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, compact)
		p := c.client("p", kgo.TransactionalID("p"))
		c.transact(p, true, "log", 0, "a=1")
		c.transact(p, false, "log", 0, "a=9", "b=9")
		c.transact(p, false, "log", 0, "a=9")
		r := c.reader()
		c.expect(r, "log", 0, "0:a=1")
		c.expect(r, "log", 2) // nothing but aborted records and markers
	})
}

// C-EMPTY-HIGH
func TestReadEmptyLogWithHighOffset(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.skipTo("log", 0, 57)
		if b := c.bounds("log", 0); b != (changelog.Bounds{Start: 57, HighWatermark: 57, LastStable: 57}) {
			t.Fatalf("bounds %+v", b)
		}
		r := c.reader()
		before := time.Now()
		c.expect(r, "log", 57)
		c.expect(r, "log", changelog.FromStart)
		if took := time.Since(before); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		_, pos, err := c.read(r, changelog.Partition{Topic: "log", From: 3, Target: 57})
		re, ok := errors.AsType[*changelog.RangeError](err)
		if !ok || !errors.Is(err, changelog.ErrBelowStart) || re.Position != 3 || re.Start != 57 || re.End != 57 || pos != 3 {
			t.Errorf("position %d, error %v", pos, err)
		}
	})
}

// C-GAPS. The holes are aborted transactions here: the in-process broker moves the
// start of a compacted log to its first record. TestReadAgainstConsumer has real holes.
func TestReadGaps(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.skipTo("log", 0, 40)
		p := c.client("p", kgo.TransactionalID("p"))
		c.transact(p, false, "log", 0, "a=9", "a=9", "a=9", "a=9")
		c.put(c.admin, "log", 0, "a=1")
		c.transact(p, false, "log", 0, "a=9", "a=9", "a=9", "a=9", "a=9")
		c.put(c.admin, "log", 0, "b=1")
		c.transact(p, false, "log", 0, "a=9", "a=9", "a=9", "a=9", "a=9", "a=9")
		if b := c.bounds("log", 0); b.Start != 40 || b.HighWatermark != 60 {
			t.Fatalf("bounds %+v", b)
		}
		c.expect(c.reader(), "log", 40, "45:a=1", "52:b=1")
	})
}

func TestReadRefusesPositionsOutsideTheLog(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.put(c.admin, "log", 0, "a=1", "b=1", "c=1")
		c.ok(c.broker.Cluster().DeleteRecords("log", 0, 2))
		cases := []struct {
			from, target int64
			is           error
			position     int64
		}{
			{1, 3, changelog.ErrBelowStart, 1},
			{4, 9, changelog.ErrBeyondEnd, 4}, // T-TRUNCATED: the position
			{2, 9, changelog.ErrBeyondEnd, 9}, // and the target, which the log never reaches
		}
		for _, cs := range cases {
			_, _, err := c.read(c.reader(), changelog.Partition{Topic: "log", From: cs.from, Target: cs.target})
			re, ok := errors.AsType[*changelog.RangeError](err)
			if !ok || !errors.Is(err, cs.is) || re.Position != cs.position || re.End != 3 {
				t.Errorf("%d to %d: %v", cs.from, cs.target, err)
			}
		}
	})
}

// T-RECREATED
func TestReadTopicGoneOrReplaced(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.put(c.admin, "log", 0, "a=1")
		have, err := changelog.DescribeTopics(c.ctx, c.admin, []string{"log"}, false)
		c.ok(err)
		p := changelog.Partition{Topic: "log", Target: 1, TopicID: have[0].ID}
		r := c.reader()
		if _, _, err := c.read(r, p); err != nil {
			t.Fatal(err)
		}
		c.ok(c.broker.Cluster().DeleteTopic("log"))
		_, _, err = c.read(r, p)
		if tg, ok := errors.AsType[*changelog.TopicGoneError](err); !ok || tg.Is != [16]byte{} || !errors.Is(err, changelog.ErrTopicGone) {
			t.Errorf("deleted: %v", err)
		}
		c.topic("log", 1, nil)
		c.put(c.client("after"), "log", 0, "b=1")
		_, _, err = c.read(r, p)
		if tg, ok := errors.AsType[*changelog.TopicGoneError](err); !ok || tg.Was != p.TopicID || tg.Is == [16]byte{} {
			t.Errorf("replaced: %v", err)
		}
		_, _, err = c.read(r, changelog.Partition{Topic: "log", Partition: 7, Target: 1})
		if !errors.Is(err, changelog.ErrTopicGone) {
			t.Errorf("partition that does not exist: %v", err)
		}
		_, _, err = c.read(r, changelog.Partition{Topic: "never", From: changelog.FromStart, Target: 1})
		if !errors.Is(err, changelog.ErrTopicGone) {
			t.Errorf("topic that never was: %v", err)
		}
	})
}

// A topic may be unknown for a moment after it was created.
func TestReadWaitsForANewTopic(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		r := c.reader()
		done := make(chan error)
		go func() {
			_, _, err := c.read(r, changelog.Partition{Topic: "log", Target: 1})
			done <- err
		}()
		c.sleep(3 * time.Second)
		c.topic("log", 1, nil)
		c.put(c.admin, "log", 0, "a=1")
		c.ok(<-done)
	})
}

func TestReadStopsAtTheTarget(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		p := c.client("p", kgo.TransactionalID("p"))
		c.transact(p, true, "log", 0, "a=1", "b=1", "c=1", "d=1")
		got, pos, err := c.read(c.reader(), changelog.Partition{Topic: "log", From: 1, Target: 3})
		if err != nil || pos != 3 || !slices.Equal(got, []string{"1:b=1", "2:c=1"}) {
			t.Errorf("position %d, records %v, %v", pos, got, err)
		}
		// Nothing is wanted: nothing is handed out, and the position stays.
		got, pos, err = c.read(c.reader(), changelog.Partition{Topic: "log", From: 3, Target: 1})
		if err != nil || pos != 3 || len(got) > 0 {
			t.Errorf("position %d, records %v, %v", pos, got, err)
		}
	})
}

// The target is the high watermark; the last stable offset below it is waited for.
func TestReadWaitsForOpenTransactions(t *testing.T) {
	for _, commit := range []bool{true, false} {
		inCluster(t, embedded.Options{}, func(c *cluster) {
			c.topic("log", 1, nil)
			p, q := c.client("p", kgo.TransactionalID("p")), c.client("q", kgo.TransactionalID("q"))
			c.ok(p.BeginTransaction())
			c.stage(p, "log", 0, "a=1")
			c.transact(q, true, "log", 0, "b=1")
			end := c.bounds("log", 0).HighWatermark
			var got []string
			done := make(chan error)
			go func() {
				_, err := c.reader().Read(c.ctx, []changelog.Partition{{Topic: "log", Target: end}}, func(_ int, rec *kgo.Record) error {
					got = append(got, line(rec))
					return nil
				}, nil)
				done <- err
			}()
			c.sleep(20 * time.Second) // longer than every bound but that of an open transaction
			select {
			case err := <-done:
				t.Fatalf("ended with %v while a transaction was open", err)
			default:
			}
			c.ok(p.EndTransaction(c.ctx, kgo.TransactionEndTry(commit)))
			before := time.Now()
			c.ok(<-done)
			if took := time.Since(before); took > 50*time.Millisecond {
				t.Errorf("took %v after the transaction had ended", took)
			}
			want := []string{"0:a=1", "1:b=1"}
			if !commit {
				want = want[1:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("commit %v: got %v", commit, got)
			}
		})
	}
}

// A position at the target is no reason not to wait: what lies below is not settled.
func TestReadAtTheTargetWaitsForOpenTransactions(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		p := c.client("p", kgo.TransactionalID("p"))
		c.ok(p.BeginTransaction())
		c.stage(p, "log", 0, "a=1")
		ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
		defer cancel()
		part := []changelog.Partition{{Topic: "log", From: 1, Target: 1}}
		ignore := func(int, *kgo.Record) error { return nil }
		if _, err := c.reader().Read(ctx, part, ignore, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read ended with %v", err)
		}
		c.ok(p.EndTransaction(c.ctx, kgo.TryCommit))
		_, err := c.reader().Read(c.ctx, part, ignore, nil)
		c.ok(err)
	})
}

// Bytes that hold no whole batch are no answer, and are told apart from a hole.
func TestReadRefusesPartialBatches(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.put(c.admin, "log", 0, "a=1")
		var broken atomic.Bool
		broken.Store(true)
		c.onFetch(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			if !broken.Load() {
				return nil
			}
			resp := emptyAnswer(req, 1, 1, nil)
			resp.Topics[0].Partitions[0].RecordBatches = make([]byte, 61)
			resp.Topics[0].Partitions[0].RecordBatches[11] = 200 // a batch of 212 bytes
			return resp
		})
		time.AfterFunc(time.Minute, func() { broken.Store(false) })
		c.expect(c.reader(), "log", 0, "0:a=1")
		broken.Store(true)
		_, pos, err := c.read(c.reader(), changelog.Partition{Topic: "log", Target: 1})
		if err == nil || errors.Is(err, context.DeadlineExceeded) || pos != 0 {
			t.Errorf("position %d, %v", pos, err)
		}
	})
}

// E-CKPT-CLOSE (the reader's part): a read that ends early says how far it came, and a
// second one goes on there.
func TestReadEndsEarlyAndGoesOn(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		p := c.client("p", kgo.TransactionalID("p"))
		for i := range 100 {
			var batch []string
			for j := range 9 {
				batch = append(batch, fmt.Sprintf("k%d=%d", i*9+j, i))
			}
			c.transact(p, i%7 != 3, "log", 0, batch...)
		}
		end := c.bounds("log", 0).HighWatermark
		whole, _, err := c.read(c.reader(), changelog.Partition{Topic: "log", Target: end})
		c.ok(err)
		stop := errors.New("closed")
		for _, limit := range []int{0, 1, 9, 400, len(whole) - 1} {
			r := c.reader(func(cfg *changelog.ReaderConfig) { cfg.MaxBytes = 2000 })
			var got []string
			sink := func(_ int, rec *kgo.Record) error {
				if len(got) == limit {
					return stop
				}
				got = append(got, line(rec))
				return nil
			}
			pos, err := r.Read(c.ctx, []changelog.Partition{{Topic: "log", Target: end}}, sink, nil)
			if !errors.Is(err, stop) {
				t.Fatalf("limit %d: %v", limit, err)
			}
			rest, _, err := c.read(r, changelog.Partition{Topic: "log", From: pos[0], Target: end})
			c.ok(err)
			if !slices.Equal(append(got, rest...), whole) {
				t.Errorf("limit %d: %d and then %d records from %d on, whole %d", limit, len(got), len(rest), pos[0], len(whole))
			}
		}
	})
}

func TestReadHonoursItsContext(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		p := c.client("p", kgo.TransactionalID("p"))
		c.ok(p.BeginTransaction())
		c.stage(p, "log", 0, "a=1")
		because := errors.New("revoked")
		ctx, cancel := context.WithCancelCause(c.ctx)
		time.AfterFunc(time.Second, func() { cancel(because) })
		before := time.Now()
		_, err := c.reader().Read(ctx, []changelog.Partition{{Topic: "log", Target: 1}}, func(int, *kgo.Record) error { return nil }, nil)
		if took := time.Since(before); !errors.Is(err, because) || took > 1100*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		c.ok(p.EndTransaction(c.ctx, kgo.TryAbort))
	})
}

// Answers that say nothing, or that come from the wrong broker, must not end a read.
func TestReadSurvivesTheBroker(t *testing.T) {
	run := func(name string, faults func(c *cluster)) {
		t.Run(name, func(t *testing.T) {
			inCluster(t, embedded.Options{Brokers: 3}, func(c *cluster) {
				c.topic("log", 2, nil)
				var want []string
				for i := range 60 {
					c.put(c.admin, "log", int32(i%2), fmt.Sprintf("k=%d", i))
					want = append(want, fmt.Sprintf("%d/%d", i%2, i/2))
				}
				slices.Sort(want)
				r := c.reader(func(cfg *changelog.ReaderConfig) { cfg.MaxBytes = 200 })
				faults(c)
				var got []string
				_, err := r.Read(c.ctx, []changelog.Partition{{Topic: "log", Target: 30}, {Topic: "log", Partition: 1, Target: 30}}, func(i int, rec *kgo.Record) error {
					got = append(got, fmt.Sprintf("%d/%d", i, rec.Offset))
					return nil
				}, nil)
				c.ok(err)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("got %v", got)
				}
			})
		})
	}
	every := func(n int, f func(*kmsg.FetchRequest) *kmsg.FetchResponse) func(*cluster) {
		return func(c *cluster) {
			calls := 0
			c.onFetch(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
				if calls++; calls%n != 0 {
					return nil
				}
				return f(req)
			})
		}
	}
	run("throttled", every(2, func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
		return req.ResponseKind().(*kmsg.FetchResponse)
	}))
	for _, e := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError,
		kerr.UnknownServerError, kerr.OffsetNotAvailable, kerr.UnknownTopicID, kerr.OffsetOutOfRange} {
		run(e.Message, every(3, func(req *kmsg.FetchRequest) *kmsg.FetchResponse { return emptyAnswer(req, -1, -1, e) }))
	}
	run("connections reset", func(c *cluster) {
		var fetches atomic.Int32
		c.network.Intercept(func(req embedded.Request) (v embedded.Verdict) {
			if req.Client != "reader" || req.Key != int16(kmsg.Fetch) {
				return v
			}
			if n := fetches.Add(1); n%3 == 0 {
				v.CutReply, v.CutRequest = n%2 == 0, n%2 == 1
			}
			return v
		})
	})
	run("leaders move", func(c *cluster) {
		n := int32(0)
		moves := make(chan int32, 100)
		c.onFetch(func(*kmsg.FetchRequest) *kmsg.FetchResponse {
			if n++; n%4 == 0 {
				moves <- n / 4
			}
			return nil
		})
		// Not from within the broker's own goroutine.
		c.background(func() {
			for {
				select {
				case m := <-moves:
					_ = c.broker.Cluster().MoveTopicPartition("log", m%2, m%3)
				case <-c.ctx.Done():
					return
				}
			}
		})
	})
}

// An authorization error is not mended by asking again.
func TestReadGivesUpOnRefusals(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		c.onFetch(func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
			return emptyAnswer(req, -1, -1, kerr.TopicAuthorizationFailed)
		})
		before := time.Now()
		_, _, err := c.read(c.reader(), changelog.Partition{Topic: "log", Target: 1})
		if took := time.Since(before); !errors.Is(err, kerr.TopicAuthorizationFailed) || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A broker that is away is waited for, but not for ever.
func TestReadGivesUpAfterAnOutage(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		r := c.reader()
		c.network.Refuse("reader", true)
		before := time.Now()
		_, _, err := c.read(r, changelog.Partition{Topic: "log", Target: 1})
		if took := time.Since(before); err == nil || took < 2*time.Minute || took > 4*time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestReadReportsProgress(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("log", 1, nil)
		for i := range 50 {
			c.put(c.admin, "log", 0, fmt.Sprintf("k%d=v", i))
		}
		r := c.reader(func(cfg *changelog.ReaderConfig) { cfg.MaxBytes = 400 })
		last, calls := int64(0), 0
		_, err := r.Read(c.ctx, []changelog.Partition{{Topic: "log", Target: 50}}, func(int, *kgo.Record) error { return nil }, func(i int, pos, target int64) {
			if calls++; i != 0 || pos < last || target != 50 {
				t.Errorf("progress of %d: %d of %d after %d", i, pos, target, last)
			}
			last = pos
		})
		c.ok(err)
		if last != 50 || calls < 5 {
			t.Errorf("last position %d after %d calls", last, calls)
		}
	})
}

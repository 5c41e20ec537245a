package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/watermark"
)

const shuffle = "app-by-value-repartition"

// raw returns everything one partition holds, aborted records and markers included.
func (s *scene) raw(topic string, partition int32) (out []*kgo.Record) {
	s.t.Helper()
	b := s.bounds(topic)[tp(topic, partition)]
	cl, err := kgo.NewClient(append(s.client, kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for next := b.Start; next < b.HighWatermark && ctx.Err() == nil; {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			out = append(out, r)
			next = r.Offset + 1
		})
	}
	return out
}

func isControl(r *kgo.Record) bool {
	return len(r.Headers) == 1 && r.Headers[0].Key == watermark.ControlHeader
}

// A control record is the last record of its transaction in every partition, so that what it speaks of has been read: what
// is sent record by record, and what a flush sends.
func TestControlRecordsComeLast(t *testing.T) {
	t.Parallel()
	for _, combine := range []bool{false, true} {
		t.Run(fmt.Sprintf("combine=%v", combine), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
				top := shuffled
				if combine {
					top = combined
				}
				kept := func(c *engine.Config) { c.PurgeInterval = time.Hour }
				s.start("a", top(), nil, kept)
				s.start("b", top(), nil, kept)
				now := 0
				s.beat(&now, 20, 0, 1)
				s.caughtUp("in")
				controls, data := 0, 0
				for p := range int32(2) {
					last := make(map[int64]bool) // by producer: its transaction has had its control record here
					for _, r := range s.raw(shuffle, p) {
						switch {
						case r.Attrs.IsControl():
							delete(last, r.ProducerID)
						case isControl(r):
							controls++
							last[r.ProducerID] = true
						default:
							if data++; last[r.ProducerID] {
								t.Errorf("record %d of partition %d comes behind the control record of its transaction", r.Offset, p)
							}
						}
					}
				}
				if controls < 20 || data < 20 {
					t.Errorf("%d control records, %d others: the test shows nothing", controls, data)
				}
			})
		})
	}
}

// What was announced in a transaction that is aborted is announced again by the next one, and not only by the refresh.
func TestBroadcastForgetsAborts(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(), nil, nil)
		now := 0
		s.beat(&now, 3, 0, 1)
		s.caughtUp("in")
		for range 5 {
			fault := s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: "in", Err: kerr.OffsetMetadataTooLarge, Count: 1})
			now++
			s.send(at(0, "k", float64(now)), at(1, "k", float64(now)))
			began := time.Now()
			n.awaitMark("counts", 0, int64(now)*1000-1)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the watermark was heard after %v", took)
			}
			if fault.Hits() != 1 {
				t.Error("nothing was aborted: the test shows nothing")
			}
		}
	})
}

// The refresh makes a reader whole that knows nothing: the control records of one period name every task.
func TestRefreshMakesReadersWhole(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 3, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.IdleAfter(5*time.Second)), nil, func(c *engine.Config) { c.PurgeInterval = time.Hour })
		s.send(at(0, "k", 11), at(1, "k", 12))
		s.pass(20 * time.Second) // all are silent, partition 2 from the first moment
		from := time.Now()
		s.pass(11 * time.Second)
		v := watermark.NewVector(watermark.WriterID("by-value"))
		for _, r := range s.raw(shuffle, 1) {
			if !isControl(r) || r.Timestamp.Before(from) {
				continue
			}
			c, err := watermark.ParseControl(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		heard := fmt.Sprint()
		for _, e := range v.Entries() {
			heard += fmt.Sprintf("%d %v %d; ", e.Task, e.State, e.W)
		}
		if want := fmt.Sprintf("0 idle 10999; 1 idle 11999; 2 idle %d; ", int64(watermark.Unknown)); heard != want {
			t.Errorf("a reader that begins now has heard %q, want %q", heard, want)
		}
		if w, _ := n.mark("counts", 1); w.W != 10_999 && w.W != 11_999 || !w.Idle {
			t.Errorf("the watermark is %+v", w)
		}
	})
}

// In = folded + late, exactly, with records that are late for one reason or another, and transactions that are aborted.
func TestConservation(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.MaxFuture(time.Hour)), nil, nil)
		refuse := func() {
			for _, topic := range []string{"in", shuffle} {
				s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: topic, Err: kerr.OffsetMetadataTooLarge, Count: 3})
			}
		}
		refuse()
		sent, future := 0, 0
		for i := 1; i <= 40; i++ {
			if i == 20 {
				refuse() // now there are late records in what is taken back
			}
			for p := range int32(2) {
				s.send(at(p, "k", float64(i)), at(p, "k", float64(i)-14.5))
				sent += 2
			}
			if i%10 == 0 {
				s.send(rec{topic: "in", key: []byte("k"), value: []byte("k"), ms: time.Now().Add(48 * time.Hour).UnixMilli()})
				future++
			}
			s.pass(100 * time.Millisecond)
		}
		s.caughtUp("in", shuffle)
		late := len(s.read("app-late")) - future
		if late < 20 || late > sent/2 {
			t.Errorf("%d late records", late)
		}
		in, folded := n.metric("operator_records_total", "operator", "counts", "outcome", "in"), n.metric("operator_records_total", "operator", "counts", "outcome", "folded")
		refused := n.metric("late_records_total", "operator", "counts")
		if int(in) != sent || int(folded) != sent-late || int(refused) != late || int(n.metric("late_records_total", "reason", "future_timestamp")) != future {
			t.Errorf("in %v, folded %v, late %v; sent %d, of which %d are in the late topic, and %d too early", in, folded, refused, sent, late, future)
		}
		if n.metric("transactions_total", "outcome", "aborted") < 12 {
			t.Error("too few aborts: the test shows nothing")
		}
	})
}

// F1 for windows behind a repartition: killed at every step of the protocol, with the disk and without, every window is
// shown once, with everything that is in it.
func TestWindowsKilled(t *testing.T) {
	t.Parallel()
	for i, p := range []engine.Point{engine.K1, engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7, engine.K8, engine.K9} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
				n := s.start("a", shuffled(), nil, nil)
				n.awaitTasks(4)
				n.dieAt(p, 4)
				var want []string
				for w := range 12 {
					for q := range int32(2) {
						s.send(at(q, "x", float64(10*w+1)), at(q, "y", float64(10*w+5)))
					}
					if w < 11 {
						want = append(want, fmt.Sprintf("x[%d,%d)=2", 10*w, 10*w+10), fmt.Sprintf("y[%d,%d)=2", 10*w, 10*w+10))
					}
					s.pass(300 * time.Millisecond)
					if n.dead() {
						d := n.remains()
						if i%2 == 0 {
							d = nil
						}
						n = s.start("a", shuffled(), d, nil)
						n.awaitTasks(4)
					}
				}
				s.saw("out", want...)
				if s.lives < 2 {
					t.Errorf("nobody died at %s: the test shows nothing", p)
				}
				if late := s.read("app-late"); len(late) != 0 {
					t.Errorf("%d late records", len(late))
				}
			})
		})
	}
}

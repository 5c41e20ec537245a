package engine_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/watermark"
)

// F-STALL: the input stops before the end of a window is passed. Without a rule for that nothing fires, and the gauge says
// that the partition is silent; with one the window fires once. The state is kept in both.
func TestFStall(t *testing.T) {
	t.Parallel()
	t.Run("stay", func(t *testing.T) {
		t.Parallel()
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			n := s.start("a", tens(watermark.IdleAfter(5*time.Second)), nil, nil)
			now := time.Now().UnixMilli()
			start := (now/10_000 + 1) * 10_000
			s.send(rec{topic: "in", key: []byte("k"), value: []byte("v"), ms: start + 3000})
			s.await("the partition to be silent", func() bool { return n.metric("partition_idle", "topic", "in") == 1 })
			s.pass(60 * time.Second)
			s.shows("out")
			m, ok := n.mark("counts", 0)
			if !ok || !m.Idle || m.W != start+2999 || m.Lag < 50*time.Second || m.Holder.Topic != "" {
				t.Errorf("the watermark is %+v", m)
			}
			if lag := n.metric("watermark_lag_seconds", "operator", "counts"); lag < 50 {
				t.Errorf("watermark_lag_seconds is %v", lag)
			}
			s.send(rec{topic: "in", key: []byte("k"), value: []byte("v"), ms: start + 4000}, rec{topic: "in", key: []byte("z"), value: []byte("v"), ms: start + 10_001})
			s.await("the pane", func() bool { return len(s.read("out")) == 1 })
			if p := s.panes("out")[0]; p.n != 2 {
				t.Errorf("counted %d", p.n)
			}
			s.await("the partition to be heard", func() bool { return n.metric("partition_idle", "topic", "in") == 0 })
		})
	})
	t.Run("with the clock", func(t *testing.T) {
		t.Parallel()
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			s.start("a", tens(watermark.IdleAfter(5*time.Second), watermark.WhenAllIdle(watermark.AdvanceWithClock)), nil, nil)
			s.pass(time.Until(time.Now().Truncate(10 * time.Second).Add(13 * time.Second)))
			sent := time.Now()
			s.send(rec{topic: "in", key: []byte("k"), value: []byte("v"), ms: sent.UnixMilli()})
			s.await("the pane", func() bool { return len(s.read("out")) > 0 })
			if took := time.Since(sent); took < 7*time.Second || took > 9*time.Second {
				t.Errorf("the pane came after %v, the window ended after 7 s", took)
			}
			s.pass(30 * time.Second)
			if p := s.panes("out"); len(p) != 1 || p[0].n != 1 {
				t.Errorf("panes %v", p)
			}
		})
	})
}

// A partition that stops holds the others back until it is silent, and then no longer; what comes from it late is late.
func TestIdlePartition(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.IdleAfter(10*time.Second)), nil, nil)
		s.send(at(0, "k", 1), at(1, "k", 2))
		s.pass(2 * time.Second)
		s.send(at(0, "k", 21))
		s.pass(5 * time.Second)
		s.shows("out") // partition 1 is at 2 s
		s.saw("out", "k[0,10)=2")
		s.await("partition 1 to be shown as silent", func() bool { return n.metric("partition_idle", "topic", "in", "partition", "1") == 1 })
		s.send(at(1, "k", 3))
		s.await("the late record", func() bool { return len(s.read("app-late")) == 1 })
		if n.metric("late_records_total", "reason", "expired") != 1 {
			t.Error("the late record is not counted")
		}
	})
}

// A partition that never had a record holds nothing back, from the first moment.
func TestUnusedPartitionIsIdle(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		s.start("a", shuffled(watermark.IdleAfter(10*time.Minute)), nil, nil)
		began := time.Now()
		s.send(at(0, "k", 1), at(0, "k", 21))
		s.saw("out", "k[0,10)=1")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// An open transaction hides records, so its partition is not silent however long it takes.
func TestOpenTransactionIsNotIdle(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.IdleAfter(5*time.Second)), nil, nil)
		s.send(at(0, "k", 1), at(1, "k", 2))
		end := s.open(at(1, "k", 3))
		s.pass(2 * time.Second)
		s.send(at(0, "k", 21))
		s.pass(40 * time.Second)
		s.shows("out")
		if n.metric("partition_idle", "partition", "1") != 0 {
			t.Error("the partition behind the transaction is shown as silent")
		}
		end(kgo.TryCommit)
		s.pass(time.Second)
		s.send(at(0, "k", 31)) // partition 0 had fallen silent itself
		s.saw("out", "k[0,10)=3", "k[20,30)=1")
	})
}

// A broker that does not answer proves nothing: while it is away nobody becomes silent.
func TestUnreachableIsNotIdle(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.IdleAfter(5*time.Second)), nil, nil)
		s.send(at(0, "k", 1), at(1, "k", 2), at(0, "k", 21))
		s.caughtUp("in")
		n.freeze(true)
		s.pass(60 * time.Second)
		s.send(at(1, "k", 3)) // before anybody could ask
		n.freeze(false)
		s.await("partition 1 to be silent", func() bool { return n.metric("partition_idle", "partition", "1") == 1 })
		s.send(at(0, "k", 31))
		s.saw("out", "k[0,10)=3", "k[20,30)=1")
		if late := s.read("app-late"); len(late) != 0 {
			t.Errorf("%d late records", len(late))
		}
	})
}

// Nor does an answer that is an error: the partition holds the others back for as long as nobody can say where it ends.
func TestProbeErrorIsNotIdle(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(watermark.IdleAfter(5*time.Second)), nil, nil)
		s.send(at(0, "k", 1), at(1, "k", 2))
		s.caughtUp("in")
		fault := s.broker.Cluster().Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "in", Partitions: []int32{1}, Err: kerr.KafkaStorageError, Count: -1,
		})
		now := 20
		s.beat(&now, 20, 0)
		if fault.Hits() < 5 {
			t.Errorf("%d probes have failed: the test shows nothing", fault.Hits())
		}
		if n.metric("partition_idle", "partition", "1") != 0 {
			t.Error("partition 1 is shown as silent")
		}
		s.shows("out")
		fault.Remove()
		s.beat(&now, 10, 0)
		s.saw("out", "k[0,10)=2", "k0[20,30)=9", "k0[30,40)=10", "k0[40,50)=10") // now it is silent
	})
}

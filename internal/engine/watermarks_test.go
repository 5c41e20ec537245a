package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
)

// holds waits at most five seconds until the instance says that an operator of one task is held by an input, and checks
// since when, in the API and in the metric.
func (n *node) holds(operator string, partition int32, holder string, why engine.HolderReason, since time.Time) {
	n.s.t.Helper()
	began := time.Now()
	for {
		w, ok := n.mark(operator, partition)
		if ok && w.Holder.String() == holder && w.Holder.Reason == why {
			if d := w.Holder.Since.Sub(since); d < -500*time.Millisecond || d > 500*time.Millisecond {
				n.s.t.Errorf("%s/%d is held since %v, want %v", operator, partition, w.Holder.Since, since)
			}
			break
		}
		if time.Since(began) > 5*time.Second {
			n.s.t.Fatalf("after 5 s %s/%d shows %+v", operator, partition, w)
		}
		n.s.pass(100 * time.Millisecond)
	}
	n.s.pass(1100 * time.Millisecond)
	if got := n.metric("watermark_holdback_seconds", "operator", operator, "input", holder); got < time.Since(since).Seconds()-1.6 {
		n.s.t.Errorf("watermark_holdback_seconds of %s by %s is %v, it is held for %v", operator, holder, got, time.Since(since))
	}
}

// beat writes a record of every second into the partitions, as often as asked.
func (s *scene) beat(seconds *int, times int, partitions ...int32) {
	s.t.Helper()
	for range times {
		*seconds++
		for _, p := range partitions {
			s.send(at(p, fmt.Sprint("k", p), float64(*seconds)))
		}
		s.pass(time.Second)
	}
}

// A partition stops: its own task names the partition, the tasks behind the repartition name the task that reads it.
func TestHolderStoppedPartition(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(), nil, nil)
		now := 0
		s.beat(&now, 5, 0, 1)
		stopped := time.Now().Add(-time.Second)
		s.beat(&now, 3, 0)
		n.holds("by-value", 1, "in/1", engine.HeldBySilence, stopped)
		n.holds("counts", 0, "task in/1", engine.HeldByUpstream, stopped)
		w, _ := n.mark("counts", 0)
		if want := (processor.TaskID{Sub: "in", Partition: 1}); w.Holder.Upstream != want || w.Holder.Topic != "app-by-value-repartition" || w.W != 4999 {
			t.Errorf("the watermark is %+v", w)
		}
		if got := n.metric("watermark_ms", "operator", "counts"); got != 4999 {
			t.Errorf("watermark_ms is %v", got)
		}
	})
}

// An upstream instance stands still: whoever reads what it wrote names its task.
func TestHolderStoppedInstance(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		slow := func(c *engine.Config) { c.SessionTimeout = 30 * time.Second }
		a := s.start("a", shuffled(), nil, slow)
		b := s.start("b", shuffled(), nil, slow)
		a.awaitTasks(2)
		b.awaitTasks(2)
		now := 0
		s.beat(&now, 5, 0, 1)
		reads := map[*node]int32{}
		for _, n := range []*node{a, b} {
			for _, id := range n.running() {
				if id.Sub == "in" {
					reads[n] = id.Partition
				}
			}
		}
		if len(reads) != 2 {
			t.Fatalf("both instances read the input: %v", reads)
		}
		b.freeze(true)
		stopped := time.Now().Add(-time.Second)
		s.beat(&now, 2, 0, 1)
		for _, id := range a.running() {
			if id.Sub == "counts" || id.Sub == "by-value" {
				a.holds("counts", id.Partition, fmt.Sprintf("task in/%d", reads[b]), engine.HeldByUpstream, stopped)
			}
		}
		b.freeze(false)
	})
}

// A transaction is left open on a partition: its task says so.
func TestHolderOpenTransaction(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", shuffled(), nil, nil)
		now := 0
		s.beat(&now, 5, 0, 1)
		end := s.open(at(1, "k1", 6))
		stopped := time.Now().Add(-time.Second)
		for range 3 { // others go on writing behind it
			s.beat(&now, 1, 0, 1)
		}
		n.holds("by-value", 1, "in/1", engine.HeldByTransaction, stopped)
		n.holds("counts", 0, "task in/1", engine.HeldByUpstream, stopped)
		end(kgo.TryAbort)
		n.awaitMark("counts", 0, 7999)
	})
}

package rebalance_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/kafkatest"
	"github.com/tidemark/tidemark/rebalance"
)

// onKafka returns a harness for the shared Kafka, with topics of its own.
func onKafka(t *testing.T) *harness {
	h := &harness{t: t, addrs: []string{kafkatest.Shared(t)}, prefix: "rb" + rand.Text()[:8], inForce: "f", plans: make(chan rebalance.Result, 1000)}
	cl, err := kgo.NewClient(kgo.SeedBrokers(h.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	create, del := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrDeleteTopicsRequest()
	for _, topic := range []string{h.prefix + "-in", h.prefix + "-x-repartition"} {
		c, d := kmsg.NewCreateTopicsRequestTopic(), kmsg.NewDeleteTopicsRequestTopic()
		c.Topic, c.NumPartitions, c.ReplicationFactor = topic, partitions, -1
		d.Topic = &topic
		create.Topics, del.Topics = append(create.Topics, c), append(del.Topics, d)
	}
	if _, err := cl.Request(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = del.RequestWith(cl.Context(), cl) })
	return h
}

func TestKafkaJoinAndLeave(t *testing.T) {
	h := onKafka(t)
	a := h.start("aa", "f")
	h.settle(a)
	b, c := h.start("bb", "f"), h.start("cc", "g")
	got := h.settle(a, b, c)
	if len(got[0].Tasks()) != partitions || len(got[1].Tasks()) != partitions {
		t.Errorf("tasks %v and %v", got[0].Tasks(), got[1].Tasks())
	}
	if r, ok := got[2].WaitingFor(); !ok || r != rebalance.OtherState {
		t.Errorf("the third waits: %v %v", r, ok)
	}
	before := time.Now()
	b.cl.Close()
	h.settle(a, c)
	t.Logf("after a leave everything was placed in %v", time.Since(before))
}

// The broker gives a static member that restarts what it had, and the leader's old
// data, without asking the leader.
func TestKafkaStaticMemberIsStale(t *testing.T) {
	h := onKafka(t)
	a, b := h.start("aa", "f", kgo.InstanceID("s-a")), h.start("bb", "f", kgo.InstanceID("s-b"))
	h.settle(a, b)
	for i, again := range []string{"b2", "b3"} {
		b.cl.Close() // static members do not leave
		b = h.start(again, "f", kgo.InstanceID("s-b"))
		h.await(func() bool { return b.balancer.Last() != nil })
		if !b.balancer.Stale() {
			t.Fatalf("restart %d: the leader was asked: %+v", i, b.balancer.Last())
		}
		b.cl.ForceRebalance()
		h.await(func() bool { return !b.balancer.Stale() })
		h.settle(a, b)
	}
}

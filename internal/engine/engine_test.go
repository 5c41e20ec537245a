package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// instance makes an engine on the embedded broker.
func instance(t *testing.T, b *embedded.Broker, top *topology.Topology, name string, d *disk, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{
		App:            "app",
		Client:         []kgo.Opt{kgo.SeedBrokers(b.Addrs()...), kgo.ProducerBatchCompression(kgo.NoCompression())},
		Workers:        2,
		CommitInterval: 20 * time.Millisecond,
		Heartbeat:      200 * time.Millisecond,
		LockState: func(workers int) (string, int, func(), error) {
			return name, workers, func() {}, nil
		},
		OpenStore: d.open, Wipe: d.wipe, SetAside: d.setAside,
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel)),
		Rand:   rand.New(rand.NewPCG(1, uint64(len(name)))),
	}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.New(plan, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func produce(t *testing.T, b *embedded.Broker, topic string, n int, key func(i int) string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i := range n {
		cl.Produce(context.Background(), &kgo.Record{Topic: topic, Key: []byte(key(i)), Value: fmt.Appendf(nil, "%d", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// lastCounts reads a topic of counts until the sum of the last values is want.
func lastCounts(t *testing.T, b *embedded.Broker, topic string, want int64) map[string]int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	last := make(map[string]int64)
	for {
		f := cl.PollFetches(ctx)
		f.EachRecord(func(r *kgo.Record) {
			v := int64(binary.BigEndian.Uint64(r.Value))
			if v <= last[string(r.Key)] {
				t.Errorf("key %s went from %d to %d", r.Key, last[string(r.Key)], v)
			}
			last[string(r.Key)] = v
		})
		var sum int64
		for _, v := range last {
			sum += v
		}
		if sum >= want {
			return last
		}
		if ctx.Err() != nil {
			t.Fatalf("counts add up to %d, want %d", sum, want)
		}
	}
}

func TestCount(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 4, "out": 4}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	produce(t, b, "in", 5000, func(i int) string { return fmt.Sprint(i % 97) })
	top := topology.New("app")
	top.Stream[string, string]("in").Count("counts").To("out")
	d := &disk{}
	for round := range 2 {
		e := instance(t, b, top, "a", d, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		lastCounts(t, b, "out", int64(5000*(round+1)))
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			produce(t, b, "in", 5000, func(i int) string { return fmt.Sprint(i % 97) })
		}
	}
}

func TestRepartitionAndRebalance(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 4, "out": 4}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const n = 20000
	top := func() *topology.Topology {
		top := topology.New("app")
		top.Stream[string, string]("in").
			KeyBy("by-last", func(v string) string { return v[len(v)-1:] }).
			Count("counts").To("out")
		return top
	}
	run := func(name string) func() {
		e := instance(t, b, top(), name, &disk{}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stopA := run("a")
	produce(t, b, "in", n, func(i int) string { return fmt.Sprint(i % 97) })
	stopB := run("b")
	produce(t, b, "in", n, func(i int) string { return fmt.Sprint(i % 97) })
	lastCounts(t, b, "out", 2*n)
	stopA()
	produce(t, b, "in", n, func(i int) string { return fmt.Sprint(i % 97) })
	got := lastCounts(t, b, "out", 3*n)
	stopB()
	for k, v := range got {
		if v != 3*n/10 {
			t.Errorf("key %s: %d", k, v)
		}
	}
}

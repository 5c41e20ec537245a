package upgrade_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/topology"
)

// cluster is a broker with one app on it.
type cluster struct {
	t      *testing.T
	broker *embedded.Broker
	client *kgo.Client
	sent   int
}

func newCluster(t *testing.T) *cluster {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 2, "out": 2, "sums": 2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.DefaultProduceTopic("in"), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &cluster{t: t, broker: b, client: cl}
}

// instance is a running App with what it has logged.
type instance struct {
	app  *tidemark.App
	logs *observer.ObservedLogs
	done chan error
}

func (c *cluster) start(f declare, change func(*tidemark.Config)) *instance {
	c.t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	cfg := tidemark.Config{
		App: "clicks", Brokers: c.broker.Addrs(), Workers: 1, CommitInterval: 10 * time.Millisecond,
		SessionTimeout: 1500 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond, Logger: zap.New(core),
	}
	if change != nil {
		change(&cfg)
	}
	top := topology.New("app")
	f(top)
	app, err := tidemark.New(top, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	i := &instance{app, logs, make(chan error, 1)}
	go func() { i.done <- app.Run(context.Background()) }()
	c.t.Cleanup(app.Close)
	return i
}

// ready waits until the instance runs its tasks.
func (c *cluster) ready(i *instance) *instance {
	c.t.Helper()
	select {
	case <-i.app.Ready():
	case err := <-i.done:
		c.t.Fatalf("ended: %v", err)
	case <-time.After(time.Minute):
		c.t.Fatal("never ready")
	}
	return i
}

func (i *instance) stop(t *testing.T) {
	t.Helper()
	i.app.Close()
	if err := <-i.done; err != nil {
		t.Error(err)
	}
}

// await polls until cond holds.
func (c *cluster) await(what string, cond func() bool) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("in vain: %s", what)
		}
	}
}

// feed sends n records, and waits until the instance that processes has counted them.
func (c *cluster) feed(i *instance, n int) {
	c.t.Helper()
	before := i.app.Processed()
	for range n {
		c.client.Produce(context.Background(), &kgo.Record{Key: []byte("k"), Value: []byte("v")}, nil)
	}
	if err := c.client.Flush(context.Background()); err != nil {
		c.t.Fatal(err)
	}
	c.sent += n
	c.await("records processed", func() bool { return i.app.Processed() >= before+int64(n) })
	c.await("the count has left", func() bool { return c.last() == int64(c.sent) })
}

// last returns the count that was shown last.
func (c *cluster) last() (n int64) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.broker.Addrs()...), kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(20*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil && n < int64(c.sent) {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { n = max(n, int64(binary.BigEndian.Uint64(r.Value))) })
	}
	return n
}

// content returns every record of every topic, uncommitted ones and markers included, as the logs hold them.
func (c *cluster) content() map[string][]string {
	c.t.Helper()
	list, err := kadm.NewClient(c.client).ListTopics(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	out := make(map[string][]string)
	offsets := make(map[string]map[int32]kgo.Offset)
	left := 0
	for _, name := range list.Names() {
		out[name], offsets[name] = []string{}, make(map[int32]kgo.Offset)
		for _, p := range c.broker.Cluster().PartitionInfos(name) {
			left += int(p.HighWatermark - p.LogStartOffset)
			offsets[name][p.Partition] = kgo.NewOffset().At(p.LogStartOffset)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.broker.Addrs()...), kgo.ConsumePartitions(offsets), kgo.KeepControlRecords(), kgo.FetchMaxWait(20*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for ; left > 0; left-- {
		fetches := cl.PollRecords(ctx, 1)
		if ctx.Err() != nil {
			c.t.Fatalf("%d records left", left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out[r.Topic] = append(out[r.Topic], fmt.Sprintf("%d/%d %x %x %v", r.Partition, r.Offset, r.Key, r.Value, r.Headers))
		})
		if fetches.Empty() {
			left++
		}
	}
	return out
}

// Two topologies meet at one app, as two binaries do. The one that would mistake the state waits without tasks, changes no
// byte of any topic, and says why; the first one goes on. When it has gone the other one ends with every difference, and
// one that fits takes over where the first has stopped.
func TestTwoTopologies(t *testing.T) {
	c := newCluster(t)
	counts := on(func(s *text) { s.Count("n").To("out"); s.Reduce("last", join) })
	other := on(func(s *text) {
		s.Sum("n", func(string) float64 { return 1 })
		s.KeyBy("by", self).Count("new")
	})
	fits := on(func(s *text) {
		s.Filter(func(string) bool { return true }).Count("n").To("out")
		s.Reduce("last", join)
		s.KeyBy("by", self).Count("new")
	})
	first := c.ready(c.start(counts, nil))
	c.feed(first, 100)
	before := c.content()
	top := topology.New("app")
	other(top)
	list, err := tidemark.CheckUpgrade(context.Background(), top, tidemark.Config{App: "clicks", Brokers: c.broker.Addrs()})
	if err != nil || len(list) != 3 {
		t.Errorf("%q, %v", list, err)
	}

	second := c.start(other, nil)
	c.await("the second waits", func() bool { return second.logs.FilterMessage("waiting without tasks").Len() > 0 })
	<-time.After(2 * time.Second) // longer than a session
	if d := cmp.Diff(before, c.content()); d != "" {
		t.Errorf("changed while the second one waits (-before +now):\n%s", d)
	}
	select {
	case <-second.app.Ready():
		t.Error("the second one is ready")
	case err := <-second.done:
		t.Errorf("the second one ended: %v", err)
	default:
	}
	said := second.logs.FilterMessage("incompatible with the topology in force").All()
	if len(said) != len(list) {
		t.Errorf("%d differences in the log, want %d", len(said), len(list))
	}
	c.feed(first, 100)
	first.stop(t)
	after := c.content()
	err = <-second.done
	ue, ok := errors.AsType[*tidemark.UpgradeError](err)
	if !ok || !errors.Is(err, tidemark.ErrIncompatible) || cmp.Diff(list, ue.Differences) != "" || bytes.Count([]byte(err.Error()), []byte("\n")) != len(list) {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(after, c.content()); d != "" {
		t.Errorf("changed by the one that was refused (-before +now):\n%s", d)
	}

	third := c.ready(c.start(fits, nil))
	c.feed(third, 100)
	// An operator may go if its id is named.
	without := on(func(s *text) { s.Count("n").To("out"); s.KeyBy("by", self).Count("new") })
	fourth := c.start(without, func(cfg *tidemark.Config) { cfg.AllowNonRestored = []string{"last"} })
	c.await("the fourth waits", func() bool { return fourth.logs.FilterMessage("waiting without tasks").Len() > 0 })
	third.stop(t)
	c.ready(fourth)
	c.feed(fourth, 100)
	fourth.stop(t)
}

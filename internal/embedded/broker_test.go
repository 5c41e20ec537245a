package embedded_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
)

func start(t *testing.T, o embedded.Options) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func client(t *testing.T, b *embedded.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// transact produces n records to the topic in one transaction and ends it.
func transact(ctx context.Context, cl *kgo.Client, topic string, n int, end kgo.TransactionEndTry) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	for i := range n {
		cl.Produce(ctx, &kgo.Record{Topic: topic, Value: fmt.Append(nil, i)}, nil)
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, end)
}

func poll(ctx context.Context, t *testing.T, cl *kgo.Client, n int) {
	t.Helper()
	for got := 0; got < n; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("poll after %d of %d records: %v", got, n, err)
		}
		got += fetches.NumRecords()
	}
}

// Ten virtual minutes of a group member and a transactional producer pass in far less than a
// second. The test runs twice: what a client pools globally must not tie it to the first bubble.
func TestBubble(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int
	}{{"version 2", 0}, {"version 1", 1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				n := embedded.NewNetwork()
				b := start(t, embedded.Options{
					Brokers: 3, Topics: map[string]int{"in": 4}, ListenFn: n.Listen, TransactionVersion: tt.version,
				})
				defer b.Close()
				producer := client(t, b, kgo.Dialer(n.Dialer("producer")), kgo.TransactionalID("tx"))
				defer producer.Close()
				consumer := client(t, b, kgo.Dialer(n.Dialer("consumer")), kgo.ConsumerGroup("group"), kgo.ConsumeTopics("in"),
					kgo.FetchIsolationLevel(kgo.ReadCommitted()))
				defer consumer.Close()

				for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
					if err := transact(ctx, producer, "in", 100, end); err != nil {
						t.Fatal(err)
					}
				}
				poll(ctx, t, consumer, 100)
				before := time.Now()
				idle, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				consumer.PollFetches(idle)
				if got := time.Since(before); got != 10*time.Minute {
					t.Errorf("idle poll returned after %v", got)
				}
				if err := transact(ctx, producer, "in", 50, kgo.TryCommit); err != nil {
					t.Fatal(err)
				}
				poll(ctx, t, consumer, 50)
			})
		})
	}
}

// A client that is cut, refused for a while and frozen beyond its session comes back by itself.
func TestBubbleFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		n := embedded.NewNetwork()
		b := start(t, embedded.Options{Topics: map[string]int{"in": 1}, ListenFn: n.Listen})
		defer b.Close()
		producer := client(t, b, kgo.Dialer(n.Dialer("producer")), kgo.DefaultProduceTopic("in"))
		defer producer.Close()
		consumer := client(t, b, kgo.Dialer(n.Dialer("consumer")), kgo.ConsumerGroup("group"), kgo.ConsumeTopics("in"),
			kgo.SessionTimeout(10*time.Second), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer consumer.Close()

		produce := func() {
			t.Helper()
			if err := producer.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		produce()
		poll(ctx, t, consumer, 1)
		if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
			t.Fatal(err)
		}
		for name, fault := range map[string]func(){
			"cut":    func() { n.Cut("consumer") },
			"refuse": func() { n.Refuse("consumer", true); time.Sleep(3 * time.Second); n.Refuse("consumer", false) },
			"freeze": func() { n.Freeze("consumer", true); time.Sleep(30 * time.Second); n.Freeze("consumer", false) },
		} {
			fault()
			produce()
			at, cancel := context.WithTimeout(ctx, time.Minute)
			got := 0
			for got == 0 && at.Err() == nil {
				got = consumer.PollRecords(at, 1).NumRecords() // errors of the fault are expected
			}
			cancel()
			if got != 1 {
				t.Errorf("%s: no record within a minute", name)
			}
			if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
				t.Errorf("%s: commit: %v", name, err)
			}
		}
	})
}

// A cut before the broker's answer leaves a transaction that has ended and a client that retries.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		n := embedded.NewNetwork()
		b := start(t, embedded.Options{Topics: map[string]int{"out": 1}, ListenFn: n.Listen})
		defer b.Close()
		producer := client(t, b, kgo.Dialer(n.Dialer("producer")), kgo.TransactionalID("tx"))
		defer producer.Close()
		cuts := 0
		n.Intercept(func(r embedded.Request) embedded.Verdict {
			if r.Client != "producer" || r.Key != kmsg.EndTxn.Int16() || cuts > 0 {
				return embedded.Verdict{}
			}
			req, err := r.Parse()
			if err != nil {
				t.Error(err)
			} else if got := req.(*kmsg.EndTxnRequest).TransactionalID; got != "tx" {
				t.Errorf("transactional id %q", got)
			}
			cuts++
			return embedded.Verdict{CutReply: true}
		})
		err := transact(ctx, producer, "out", 1, kgo.TryCommit)
		t.Logf("EndTransaction: %v", err)
		if cuts != 1 {
			t.Errorf("%d cuts", cuts)
		}
		if info := b.Cluster().PartitionInfo("out", 0); info.HighWatermark != 2 || info.LastStableOffset != 2 {
			t.Errorf("record and marker not visible: %+v", info)
		}
	})
}

func TestDataDir(t *testing.T) {
	o := embedded.Options{DataDir: t.TempDir(), Topics: map[string]int{"a": 2}}
	b := start(t, o)
	cl := client(t, b)
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	b.Close()
	b.Close()

	o.Topics["b"] = 3
	b = start(t, o)
	defer b.Close()
	cl = client(t, b)
	defer cl.Close()
	admin := kadm.NewClient(cl)
	ends, err := admin.ListEndOffsets(t.Context(), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
	if len(ends["a"]) != 2 || len(ends["b"]) != 3 || total != 1 {
		t.Errorf("after the restart: %v", ends)
	}
	created, err := admin.CreateTopic(t.Context(), -1, 1, nil, "c")
	if err != nil || created.NumPartitions != 1 {
		t.Errorf("default partitions: %d, %v", created.NumPartitions, err)
	}
}

func TestPortInUse(t *testing.T) {
	n := embedded.NewNetwork()
	b := start(t, embedded.Options{ListenFn: n.Listen, Port: 9092})
	defer b.Close()
	if _, err := embedded.Start(embedded.Options{ListenFn: n.Listen, Port: 9092}); err == nil {
		t.Error("second broker on the same port")
	}
}

func TestFault(t *testing.T) {
	n := embedded.NewNetwork()
	b := start(t, embedded.Options{Topics: map[string]int{"a": 1}, ListenFn: n.Listen})
	defer b.Close()
	cl := client(t, b, kgo.Dialer(n.Dialer("p")), kgo.RecordRetries(0))
	defer cl.Close()
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed})
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a"}).FirstErr(); err != kerr.TopicAuthorizationFailed {
		t.Errorf("produce: %v", err)
	}
}

package kafkatest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

// One broker goes through everything: paused and continued, killed and restarted, stopped.
func TestBrokerLife(t *testing.T) {
	b := kafkatest.New(t, kafkatest.Options{TransactionVersion: 1, Properties: map[string]string{"message.max.bytes": "2000"}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.TransactionalID("life"), kgo.DefaultProduceTopic("life"),
		kgo.ProducerBatchMaxBytes(1500), kgo.ConsumeTopics("life"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "life"); err != nil {
		t.Fatal(err)
	}
	config, err := admin.DescribeBrokerConfigs(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config[0].Configs {
		if c.Key == "message.max.bytes" && c.MaybeValue() != "2000" {
			t.Errorf("message.max.bytes=%s", c.MaybeValue())
		}
	}
	commit := func(value string) {
		t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	commit("first")

	if err := b.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancelShort := context.WithTimeout(ctx, 300*time.Millisecond)
	if err := cl.Ping(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping of a paused broker: %v", err)
	}
	cancelShort()
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	commit("second")

	pid := b.Pid()
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if b.Pid() == pid {
		t.Error("same process after a restart")
	}
	commit("third")
	var got []string
	for len(got) < 3 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if len(got) != 3 || got[0] != "first" || got[2] != "third" {
		t.Errorf("records %q", got)
	}

	if err := errors.Join(b.Pause(), b.Stop(), b.Stop()); err != nil {
		t.Errorf("stop of a paused broker: %v", err)
	}
}

func TestShared(t *testing.T) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(kafkatest.Shared(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		t.Fatal(err)
	}
}

package tidemark_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/topology"
)

// counts runs a counting app until it has processed n records.
func counts(t *testing.T, b *embedded.Broker, dir string, n int64) {
	t.Helper()
	top := topology.New("counts")
	top.Stream[string, string]("in").Count("per-key").To("out")
	app, err := tidemark.New(top, tidemark.Config{Brokers: b.Addrs(), StateDir: dir, CommitInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- app.Run(context.Background()) }()
	<-app.Ready()
	for app.Processed() < n {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	app.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := app.Run(context.Background()); !errors.Is(err, tidemark.ErrClosed) {
		t.Errorf("second Run: %v", err)
	}
}

func TestAppKeepsItsState(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 2, "out": 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.DefaultProduceTopic("in"),
		kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	dir := t.TempDir()
	for range 3 {
		for i := range 1000 {
			cl.Produce(context.Background(), &kgo.Record{Key: fmt.Append(nil, i%10), Value: []byte("v")}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := cl.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		counts(t, b, dir, 1000)
	}
	const want = "\x00\x00\x00\x00\x00\x00\x01\x2c" // 300
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	last := make(map[string]string)
	full := func() (n int) {
		for _, v := range last {
			if v == want {
				n++
			}
		}
		return n
	}
	for full() < 10 {
		if ctx.Err() != nil {
			t.Fatalf("got %q", last)
		}
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { last[string(r.Key)] = string(r.Value) })
	}
}

func TestConfigErrorsComeAtOnce(t *testing.T) { // T-DURATION-32
	top := topology.New("t")
	top.Stream[string, string]("in").To("out")
	_, err := tidemark.New(top, tidemark.Config{SessionTimeout: 30 * 24 * time.Hour, TransactionTimeout: 50 * 24 * time.Hour})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"Brokers", "SessionTimeout", "TransactionTimeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %s in %v", want, err)
		}
	}
}

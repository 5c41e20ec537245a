package system_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/check"
	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/internal/embedded"
)

// What is measured is right: every workload on the embedded broker, with the checker of the benchmark. The output is
// fed to a new checker after every poll until it is satisfied.
func TestWorkloads(t *testing.T) {
	const n, seed = 3000, 5
	for _, name := range []string{"W1", "W2", "W2Z", "W6", "H10"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := workload.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := embedded.Start(embedded.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for _, topic := range []string{s.Input(), s.Output()} {
				if err := b.CreateTopic(topic, workload.Partitions, map[string]string{"retention.ms": "-1"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := workload.Load(t.Context(), b.Addrs()[0], s, n, seed); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() {
				ended <- system.Main(ctx, []string{"-bootstrap", b.Addrs()[0], "-w", name, "-state", t.TempDir(), "-commit-ms", "20"}, io.Discard)
			}()
			if err := await(t, b.Addrs(), s, n, seed); err != nil {
				t.Error(err)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func await(t *testing.T, addrs []string, s workload.Spec, n int, seed uint64) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(s.Output()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var records []*kgo.Record
	for {
		records = append(records, cl.PollFetches(ctx).Records()...)
		c, err := check.New(s, n, seed)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := c.Record(r.Key, r.Value); err != nil {
				return err
			}
		}
		if err = c.Finish(); err == nil || ctx.Err() != nil {
			return err
		}
	}
}

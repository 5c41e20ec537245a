package nexmark

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
)

// An instance on a broker gives the same: four partitions that are read as they come, events out of order.
func TestEngine(t *testing.T) {
	const partitions = 4
	o := Options{Events: 10_000, Seed: 11, Every: 12 * time.Millisecond, Delayed: 0.1}
	for _, name := range []string{"q0", "q5", "q7", "q11"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := embedded.Start(embedded.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for _, topic := range []string{Input, q.Output()} {
				if err := b.CreateTopic(topic, partitions, map[string]string{"retention.ms": "-1"}); err != nil {
					t.Fatal(err)
				}
			}
			n, err := Load(t.Context(), partitions, Generate(o), End(o), kgo.SeedBrokers(b.Addrs()...))
			if err != nil || n != int64(o.Events)+partitions {
				t.Fatalf("%d records are loaded: %v", n, err)
			}
			app, err := tidemark.New(q.Topology("nexmark", nil), tidemark.Config{Brokers: b.Addrs(), CommitInterval: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- app.Run(context.Background()) }()
			want := expected(q, AtOnce(Generate(o)))
			read := func() (rows []Row) {
				if err := Read(t.Context(), q.Output(), func(r Row) { rows = append(rows, r) }, kgo.SeedBrokers(b.Addrs()...)); err != nil {
					t.Error(err)
				}
				return rows
			}
			limit := time.After(30 * time.Second)
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for len(read()) < len(want) && !t.Failed() {
				select {
				case err := <-ended:
					t.Fatalf("ended: %v", err)
				case <-limit:
					t.Error("not all rows came in time")
				case <-again.C:
				}
			}
			app.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			got := read()
			slices.SortFunc(got, Row.Compare)
			compare(t, got, want)
		})
	}
}

package witness

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Loader produces the inputs of a run. Its records are retried for as long as it takes, idempotently, so an
// input is in the log once or not at all; which ones were acknowledged is kept.
type Loader struct {
	cl   *kgo.Client
	gen  *workload.Generator
	seed maphash.Seed

	mu    sync.Mutex
	acked []ack
	err   error // first failure: its outcome is unknown
}

type ack struct {
	topic     string
	partition int32
	offset    int64
	hash      uint64
}

// NewLoader returns a loader that connects with these options.
func NewLoader(client []kgo.Opt, gen *workload.Generator) (*Loader, error) {
	// One request at a time: with several, a reset of the producer's state could let a later record overtake.
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, client...), kgo.UnknownTopicRetries(-1), kgo.MaxProduceRequestsInflightPerBroker(1))...)
	if err != nil {
		return nil, fmt.Errorf("witness: loader: %w", err)
	}
	return &Loader{cl: cl, gen: gen, seed: maphash.MakeSeed()}, nil
}

func hashOf(seed maphash.Seed, key, value []byte) uint64 {
	return maphash.Bytes(seed, key)*31 + maphash.Bytes(seed, value)
}

// Produce sends the next n inputs without waiting for their acknowledgement.
func (l *Loader) Produce(ctx context.Context, n int) error {
	for range n {
		in, err := l.gen.Next()
		if err != nil {
			return fmt.Errorf("witness: generate: %w", err)
		}
		l.send(ctx, in)
	}
	return nil
}

// End sends what lets every window close, and waits for the acknowledgement of everything. Nothing may be produced
// afterwards.
func (l *Loader) End(ctx context.Context) error {
	ends, err := l.gen.Ends()
	if err != nil {
		return fmt.Errorf("witness: generate: %w", err)
	}
	for _, in := range ends {
		l.send(ctx, in)
	}
	return l.Flush(ctx)
}

func (l *Loader) send(ctx context.Context, in workload.Input) {
	l.cl.Produce(ctx, &kgo.Record{Topic: in.Topic, Key: in.Key, Value: in.Value}, func(r *kgo.Record, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			if l.err == nil {
				l.err = fmt.Errorf("witness: produce to %s: %w", r.Topic, err)
			}
			return
		}
		l.acked = append(l.acked, ack{r.Topic, r.Partition, r.Offset, hashOf(l.seed, r.Key, r.Value)})
	})
}

// Flush waits until everything sent is acknowledged.
func (l *Loader) Flush(ctx context.Context) error {
	err := l.cl.Flush(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(err, l.err)
}

// Acked returns the number of acknowledged inputs.
func (l *Loader) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// Close closes the client.
func (l *Loader) Close() { l.cl.Close() }

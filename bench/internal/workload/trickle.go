package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Trickle writes rate records a second with keys of s to its input until ctx ends.
func Trickle(ctx context.Context, addr string, s Spec, rate int, seed uint64) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return fmt.Errorf("workload: trickle: %w", err)
	}
	defer cl.Close()
	s.Fill = false
	g := NewGen(s, 1<<31, seed+1)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, sent := time.Now(), 0
	failed := make(chan error, 1)
	done := func(_ *kgo.Record, err error) {
		if err != nil && ctx.Err() == nil {
			select {
			case failed <- err:
			default:
			}
		}
	}
	var r Rec
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("workload: trickle: %w", err)
		case now := <-tick.C:
			for due := int(now.Sub(began).Seconds() * float64(rate)); sent < due && g.Next(&r); sent++ {
				cl.Produce(ctx, &kgo.Record{Topic: s.Input(), Timestamp: now, Key: AppendKey(nil, r.ID), Value: g.AppendValue(nil, &r)}, done)
			}
		}
	}
}

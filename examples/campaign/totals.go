package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// board holds the latest committed totals, as any consumer of the output topic sees them.
type board struct {
	mu     sync.Mutex
	totals map[string]Totals
}

func (b *board) snapshot() map[string]Totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.totals)
}

// follow reads the output topic from its start, committed records only.
func (b *board) follow(ctx context.Context, addrs []string) error {
	cl, err := reader(addrs, totalsTopic)
	if err != nil {
		return err
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		var bad error
		b.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			var t Totals
			if err := json.Unmarshal(r.Value, &t); err != nil {
				bad = fmt.Errorf("%s/%d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
				return
			}
			b.totals[string(r.Key)] = t
		})
		b.mu.Unlock()
		if bad != nil {
			return bad
		}
	}
	return nil
}

func reader(addrs []string, topic string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
}

// recount adds the events up in a plain loop over the whole input: what the totals must be.
func recount(ctx context.Context, addrs []string) (totals map[string]Totals, events int64, err error) {
	cl, err := reader(addrs, eventsTopic)
	if err != nil {
		return nil, 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, eventsTopic)
	if err != nil {
		return nil, 0, err
	}
	left := make(map[int32]int64)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	totals = make(map[string]Totals)
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e AdEvent
			if uerr := json.Unmarshal(r.Value, &e); uerr != nil {
				err = uerr
			}
			if events++; e.Billable() {
				totals[e.Campaign] = totals[e.Campaign].Add(e)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return totals, events, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readAll calls fn for every committed record of topics that nobody writes to any more.
func readAll(ctx context.Context, topics []string, fn func(*kgo.Record) error, opts ...kgo.Opt) error {
	cl, err := kgo.NewClient(append(opts,
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the last thing in a partition is the end of a transaction
		kgo.MetadataMinAge(100*time.Millisecond),
	)...)
	if err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	defer cl.Close()
	ends, err := settled(ctx, kadm.NewClient(cl), topics)
	if err != nil {
		return err
	}
	type partition struct {
		topic string
		n     int32
	}
	left := map[partition]int64{} // the end of every partition that is not read yet
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[partition{o.Topic, o.Partition}] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		var bad error
		fetches.EachError(func(_ string, _ int32, err error) { bad = errors.Join(bad, err) })
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				bad = errors.Join(bad, fn(r))
			}
			if p := (partition{r.Topic, r.Partition}); r.Offset+1 >= left[p] {
				delete(left, p)
			}
		})
		if bad != nil {
			return fmt.Errorf("flights: read results: %w", bad)
		}
	}
	return nil
}

// settled returns the ends of the topics once no transaction is open on them: the broker ends the last one of an app a
// moment after the app has.
func settled(ctx context.Context, adm *kadm.Client, topics []string) (kadm.ListedOffsets, error) {
	for {
		ends, err := adm.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("flights: %w", err)
		}
		stable, err := adm.ListCommittedOffsets(ctx, topics...)
		if err == nil {
			err = stable.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("flights: %w", err)
		}
		open := false
		ends.Each(func(o kadm.ListedOffset) {
			s, _ := stable.Lookup(o.Topic, o.Partition)
			open = open || s.Offset < o.Offset
		})
		if !open {
			return ends, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

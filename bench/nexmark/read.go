package nexmark

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Read calls fn for every committed record of a topic up to its present end. fn may keep the rows.
func Read(ctx context.Context, topic string, fn func(Row), client ...kgo.Opt) error {
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(),
	}, client...)...)
	if err != nil {
		return fmt.Errorf("nexmark: read: %w", err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("nexmark: read: %w", err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := cl.PollRecords(ctx, 50_000)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("nexmark: read: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := left[r.Partition]
			if !ok {
				return
			}
			if r.Offset >= end-1 {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() && r.Offset < end {
				fn(Row{r.Key, r.Timestamp.UnixMilli(), r.Value})
			}
		})
	}
	return nil
}

package changelog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// purgeTimeout is how long the broker may wait for its followers, in milliseconds.
const purgeTimeout = 10_000

// Purge deletes the records of repartition partitions below the committed offsets
// given, but never the last batch of a partition: a log that is not empty keeps its
// offsets whatever becomes of the broker's own checkpoints. It returns the first
// offset left of each partition that was purged; a partition with nothing to delete is
// not in the result. The error joins one per partition that could not be purged, the
// others are purged all the same.
//
// Nothing but the offsets protects what is still needed: the broker deletes records of
// open transactions without a word. Pass committed offsets and never positions.
func Purge(ctx context.Context, cl *kgo.Client, committed map[TopicPartition]int64) (map[TopicPartition]int64, error) {
	var parts []TopicPartition
	for p := range committed {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, compareTopicPartition)
	starts, err := ListStarts(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	ends, err := ListHighWatermarks(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = purgeTimeout
	for _, p := range parts {
		to := purgeTo(starts[p], ends[p], committed[p])
		if to <= starts[p] {
			continue
		}
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.Topic {
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewDeleteRecordsRequestTopicPartition()
		rp.Partition = p.Partition
		rp.Offset = to
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, rp)
	}
	left := make(map[TopicPartition]int64)
	if len(req.Topics) == 0 {
		return left, nil
	}
	var errs []error
	for _, shard := range cl.RequestSharded(ctx, req) {
		if shard.Err != nil {
			errs = append(errs, fmt.Errorf("changelog: purge: %w", shard.Err))
			continue
		}
		for _, t := range shard.Resp.(*kmsg.DeleteRecordsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					errs = append(errs, fmt.Errorf("changelog: purge %s/%d: %w", t.Topic, p.Partition, err))
					continue
				}
				left[TopicPartition{t.Topic, p.Partition}] = p.LowWatermark
			}
		}
	}
	return left, errors.Join(errs...)
}

// purgeTo returns the offset to delete up to. The batch that holds offset end-1 is
// the last one, and deleting up to an offset inside a batch keeps the batch.
func purgeTo(start, end, committed int64) int64 {
	return max(start, min(committed, end-1))
}

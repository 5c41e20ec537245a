package changelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/clock"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns "<topic>/<partition>".
func (p TopicPartition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

func compareTopicPartition(a, b TopicPartition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// Bounds are the three positions of a partition's log.
type Bounds struct {
	Start         int64 // first offset of the log
	HighWatermark int64 // next offset of the replicated log
	LastStable    int64 // below it no transaction is open
}

// listTries bounds how often a partition without a usable leader, or of a topic that
// is not known (yet), is asked again: about five seconds, after which the caller learns
// the broker's reason.
const listTries = 56

const (
	timestampEarliest = -2
	timestampLatest   = -1

	readUncommitted = 0
	readCommitted   = 1
)

// ListBounds asks for all three positions of explicit partitions. The last stable
// offset is asked for first and the high watermark last, so that Start ≤ LastStable ≤
// HighWatermark holds in the answer. Errors: *TopicGoneError for a topic or partition
// that does not exist, else the broker's.
func ListBounds(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]Bounds, error) {
	starts, err := ListStarts(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	stable, err := ListLastStable(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	ends, err := ListHighWatermarks(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	out := make(map[TopicPartition]Bounds, len(parts))
	for _, p := range parts {
		out[p] = Bounds{Start: starts[p], LastStable: stable[p], HighWatermark: ends[p]}
	}
	return out, nil
}

// ListStarts returns the first offset of each partition. Errors as ListBounds.
func ListStarts(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return listOffsets(ctx, cl, parts, timestampEarliest, readUncommitted)
}

// ListHighWatermarks returns the high watermark of each partition. Errors as ListBounds.
func ListHighWatermarks(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return listOffsets(ctx, cl, parts, timestampLatest, readUncommitted)
}

// ListLastStable returns the last stable offset of each partition. Errors as ListBounds.
func ListLastStable(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return listOffsets(ctx, cl, parts, timestampLatest, readCommitted)
}

// listOffsets lists explicit partitions, again for those without a usable leader.
// The client sends each partition to its leader and renews stale metadata by itself.
func listOffsets(ctx context.Context, cl *kgo.Client, parts []TopicPartition, timestamp int64, isolation int8) (map[TopicPartition]int64, error) {
	out := make(map[TopicPartition]int64, len(parts))
	open := slices.Clone(parts)
	for try := 0; len(open) > 0; try++ {
		last := listOnce(ctx, cl, open, timestamp, isolation, out)
		open = slices.DeleteFunc(open, func(p TopicPartition) bool { _, ok := out[p]; return ok })
		for _, p := range open {
			err := last[p]
			if err == nil {
				err = errors.New("the broker left the partition out of its answer")
			}
			if unknownTopic(err) && try >= listTries {
				return nil, &TopicGoneError{Topic: p.Topic}
			}
			if ctx.Err() != nil || try >= listTries || !again(err) {
				return nil, fmt.Errorf("changelog: list offsets of %v: %w", p, err)
			}
		}
		if len(open) > 0 {
			if err := pause(ctx, clock.Real(), backoff(try)); err != nil {
				return nil, fmt.Errorf("changelog: list offsets of %v: %w", open[0], err)
			}
		}
	}
	return out, nil
}

// listOnce asks once for an offset of each partition, adds what is answered to out, and returns the errors of the others.
func listOnce(ctx context.Context, cl *kgo.Client, parts []TopicPartition, timestamp int64, isolation int8, out map[TopicPartition]int64) map[TopicPartition]error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = isolation
	for topic, ps := range byTopic(parts) {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, p := range ps {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition = p
			rp.CurrentLeaderEpoch = -1
			rp.Timestamp = timestamp
			t.Partitions = append(t.Partitions, rp)
		}
		req.Topics = append(req.Topics, t)
	}
	last := make(map[TopicPartition]error)
	for _, shard := range cl.RequestSharded(ctx, req) {
		if shard.Err != nil {
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					last[TopicPartition{t.Topic, p.Partition}] = shard.Err
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				tp := TopicPartition{t.Topic, p.Partition}
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					last[tp] = err
					continue
				}
				out[tp] = p.Offset
			}
		}
	}
	return last
}

// byTopic groups partitions by topic.
func byTopic(parts []TopicPartition) map[string][]int32 {
	m := make(map[string][]int32)
	for _, p := range parts {
		m[p.Topic] = append(m[p.Topic], p.Partition)
	}
	return m
}

// unknownTopic reports the codes that mean: no such topic, or not under this id.
func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID)
}

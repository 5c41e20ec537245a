package changelog

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Bounds are the three positions of a partition's log.
type Bounds struct {
	Start         int64 // first offset of the log
	HighWatermark int64 // next offset of the replicated log
	LastStable    int64 // below it no transaction is open
}

// ListBounds asks for all three positions of explicit partitions.
func ListBounds(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]Bounds, error) {
	return nil, errors.New("changelog: list bounds: not built yet")
}

// ListStarts returns the first offset of each partition.
func ListStarts(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return nil, errors.New("changelog: list starts: not built yet")
}

// ListHighWatermarks returns the high watermark of each partition.
func ListHighWatermarks(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return nil, errors.New("changelog: list high watermarks: not built yet")
}

// ListLastStable returns the last stable offset of each partition.
func ListLastStable(ctx context.Context, cl *kgo.Client, parts []TopicPartition) (map[TopicPartition]int64, error) {
	return nil, errors.New("changelog: list last stable offsets: not built yet")
}

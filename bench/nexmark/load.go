package nexmark

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load writes an input to its topic, which must exist with so many partitions: the events to the partitions in turn, and
// its end to every one. Timestamps are the event times. It returns the number of records.
func Load(ctx context.Context, partitions int, events iter.Seq[Event], end Event, client ...kgo.Opt) (records int64, err error) {
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(512 << 10),
		kgo.MaxBufferedRecords(200_000),
		kgo.ProducerLinger(5 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, client...)...)
	if err != nil {
		return 0, fmt.Errorf("nexmark: load: %w", err)
	}
	defer cl.Close()
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil && failed == nil {
			failed = err // promises run on one goroutine; read after Flush
		}
	}
	var slab []byte // values are cut from slabs: loading should not be bound by the allocator
	write := func(e Event, partition int) error {
		if cap(slab)-len(slab) < 4096 {
			slab = make([]byte, 0, 1<<20)
		}
		from := len(slab)
		b, err := Codec().Append(slab, e)
		if err != nil {
			return fmt.Errorf("nexmark: load: %w", err)
		}
		slab = b
		cl.Produce(ctx, &kgo.Record{
			Topic: Input, Partition: int32(partition), Timestamp: e.When(), Value: b[from:len(b):len(b)],
		}, done)
		records++
		return nil
	}
	next := 0
	for e := range events {
		if err := write(e, next); err != nil {
			return records, err
		}
		next = (next + 1) % partitions
	}
	for p := range partitions {
		if err := write(end, p); err != nil {
			return records, err
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return records, fmt.Errorf("nexmark: load: %w", err)
	}
	if failed != nil {
		return records, fmt.Errorf("nexmark: load: %w", failed)
	}
	return records, nil
}

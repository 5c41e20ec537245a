package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load fills the input topic, which must exist and be empty.
func Load(ctx context.Context, addr string, s Spec, n int, seed uint64) error {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(addr),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // murmur2, as Java clients
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(512<<10),
		kgo.MaxBufferedRecords(200_000),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond),
	)
	if err != nil {
		return fmt.Errorf("workload: load: %w", err)
	}
	defer cl.Close()
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil && failed == nil {
			failed = err // promises run on one goroutine; read after Flush
		}
	}
	// Keys and values are cut from slabs: loading should not be bound by the allocator.
	var slab []byte
	g := NewGen(s, n, seed)
	var r Rec
	for g.Next(&r) {
		if cap(slab)-len(slab) < KeySize+s.Value() {
			slab = make([]byte, 0, 1<<20)
		}
		k := len(slab)
		slab = AppendKey(slab, r.ID)
		v := len(slab)
		slab = g.AppendValue(slab, &r)
		cl.Produce(ctx, &kgo.Record{
			Topic: s.Input(), Timestamp: time.UnixMilli(r.Time),
			Key: slab[k:v:v], Value: slab[v:len(slab):len(slab)],
		}, done)
	}
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("workload: load: %w", err)
	}
	if failed != nil {
		return fmt.Errorf("workload: load: %w", failed)
	}
	return nil
}

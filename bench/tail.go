package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// spoilTail lets the partitions of a changelog end with what a restore must pass over: an aborted transaction in those
// with an even number, nothing but a marker in the others.
func (b *bench) spoilTail(ctx context.Context, topic string) error {
	// The older protocol adds partitions to a transaction without writing to them.
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.MaxVersions(kversion.V3_0_0()), kgo.TransactionalID("bench-tail"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	for p := int32(0); p < workload.Partitions; p += 2 {
		for i := range 1000 {
			cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: p, Key: workload.AppendKey(nil, uint64(i)), Value: make([]byte, workload.ValueSize)}, nil)
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if err := cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = "bench-tail", id, epoch
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic = topic
	for p := int32(1); p < workload.Partitions; p += 2 {
		t.Partitions = append(t.Partitions, p)
	}
	add.Topics = append(add.Topics, t)
	err = retry(ctx, func() error {
		added, err := add.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, t := range added.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return fmt.Errorf("add partition %d: %w", p.Partition, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "bench-tail", id, epoch, true
	return retry(ctx, func() error {
		ended, err := end.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(ended.ErrorCode)
	})
}

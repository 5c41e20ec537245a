package changelog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/clock"
)

// OpenTransaction is a producer with an open transaction on a partition.
type OpenTransaction struct {
	TopicPartition
	ProducerID       int64
	ProducerEpoch    int32
	Start            int64 // first offset of the transaction in the partition
	CoordinatorEpoch int32 // of the last marker, -1 for none; repairs need it
	LastTime         int64 // wall clock of the producer's last batch, milliseconds
}

// Producer is a producer the broker remembers on a partition, with or without an
// open transaction. It remembers them for a day by default.
type Producer struct {
	TopicPartition
	ProducerID       int64
	ProducerEpoch    int32
	CoordinatorEpoch int32
	TxnStart         int64 // first offset of the open transaction, -1 for none
	LastTime         int64 // wall clock of the last batch, milliseconds
}

// OpenTransactions returns every open transaction on the partitions, sorted by
// topic, partition and producer id. Errors: *TopicGoneError, else the broker's.
func OpenTransactions(ctx context.Context, cl *kgo.Client, parts []TopicPartition) ([]OpenTransaction, error) {
	producers, err := DescribeProducers(ctx, cl, parts)
	if err != nil {
		return nil, err
	}
	var out []OpenTransaction
	for _, p := range producers {
		if p.TxnStart >= 0 {
			out = append(out, OpenTransaction{p.TopicPartition, p.ProducerID, p.ProducerEpoch, p.TxnStart, p.CoordinatorEpoch, p.LastTime})
		}
	}
	return out, nil
}

// DescribeProducers returns every producer the brokers remember on the partitions,
// sorted by topic, partition and producer id. Errors as OpenTransactions.
func DescribeProducers(ctx context.Context, cl *kgo.Client, parts []TopicPartition) ([]Producer, error) {
	var out []Producer
	open := slices.Clone(parts)
	for try := 0; len(open) > 0; try++ {
		req := kmsg.NewPtrDescribeProducersRequest()
		for topic, ps := range byTopic(open) {
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic = topic
			t.Partitions = ps
			req.Topics = append(req.Topics, t)
		}
		failed := make(map[TopicPartition]error)
		for _, p := range open {
			failed[p] = errNotAnswered
		}
		for _, shard := range cl.RequestSharded(ctx, req) {
			if shard.Err != nil {
				for _, t := range shard.Req.(*kmsg.DescribeProducersRequest).Topics {
					for _, p := range t.Partitions {
						failed[TopicPartition{t.Topic, p}] = shard.Err
					}
				}
				continue
			}
			for _, t := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
				for _, p := range t.Partitions {
					tp := TopicPartition{t.Topic, p.Partition}
					if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
						failed[tp] = err
						continue
					}
					delete(failed, tp)
					for _, a := range p.ActiveProducers {
						out = append(out, Producer{tp, a.ProducerID, a.ProducerEpoch, a.CoordinatorEpoch, a.CurrentTxnStartOffset, a.LastTimestamp})
					}
				}
			}
		}
		open = open[:0]
		for p, err := range failed {
			if unknownTopic(err) && try >= listTries {
				return nil, &TopicGoneError{Topic: p.Topic}
			}
			if ctx.Err() != nil || try >= listTries || !again(err) {
				return nil, fmt.Errorf("changelog: describe producers of %v: %w", p, err)
			}
			open = append(open, p)
		}
		if len(open) > 0 {
			if err := pause(ctx, clock.Real(), backoff(try)); err != nil {
				return nil, fmt.Errorf("changelog: describe producers of %v: %w", open[0], err)
			}
		}
	}
	slices.SortFunc(out, func(a, b Producer) int {
		return cmp.Or(compareTopicPartition(a.TopicPartition, b.TopicPartition), cmp.Compare(a.ProducerID, b.ProducerID))
	})
	return out, nil
}

var errNotAnswered = fmt.Errorf("the broker left the partition out of its answer")

// Transaction is one transactional id known to the cluster.
type Transaction struct {
	ID         string
	ProducerID int64
	State      string // as the broker names it: Empty, Ongoing, PrepareCommit, ...
}

// ListTransactions returns the transactional ids of the application, sorted. It
// errors if any broker could not be asked: a list with a gap would leave an owner
// unfenced.
func ListTransactions(ctx context.Context, cl *kgo.Client, names Names) ([]Transaction, error) {
	var out []Transaction
	for _, shard := range cl.RequestSharded(ctx, kmsg.NewPtrListTransactionsRequest()) {
		err := shard.Err
		if err == nil {
			err = kerr.ErrorForCode(shard.Resp.(*kmsg.ListTransactionsResponse).ErrorCode)
		}
		if err != nil {
			return nil, fmt.Errorf("changelog: list transactions of %q on broker %d: %w", names.Base(), shard.Meta.NodeID, err)
		}
		for _, s := range shard.Resp.(*kmsg.ListTransactionsResponse).TransactionStates {
			if _, _, ok := names.ParseTransactionalID(s.TransactionalID); ok {
				out = append(out, Transaction{s.TransactionalID, s.ProducerID, s.TransactionState})
			}
		}
	}
	slices.SortFunc(out, func(a, b Transaction) int { return strings.Compare(a.ID, b.ID) })
	// A coordinator on the move may be listed by its old and its new broker.
	return slices.CompactFunc(out, func(a, b Transaction) bool { return a.ID == b.ID }), nil
}

package changelog

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// OpenTransaction is a producer with an open transaction on a partition.
type OpenTransaction struct {
	TopicPartition
	ProducerID       int64
	ProducerEpoch    int32
	Start            int64 // first offset of the transaction in the partition
	CoordinatorEpoch int32
	LastTime         int64 // wall clock of the producer's last batch, milliseconds
}

// OpenTransactions returns every open transaction on the partitions, sorted by
// topic, partition and producer id.
func OpenTransactions(ctx context.Context, cl *kgo.Client, parts []TopicPartition) ([]OpenTransaction, error) {
	return nil, errors.New("changelog: open transactions: not built yet")
}

// Transaction is one transactional id known to the cluster.
type Transaction struct {
	ID         string
	ProducerID int64
	State      string // as the broker names it: Empty, Ongoing, PrepareCommit, ...
}

// ListTransactions returns the transactional ids of the application, sorted.
func ListTransactions(ctx context.Context, cl *kgo.Client, names Names) ([]Transaction, error) {
	return nil, errors.New("changelog: list transactions: not built yet")
}

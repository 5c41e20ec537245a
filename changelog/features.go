package changelog

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TransactionVersion returns the finalized transaction.version of the cluster: 2 or
// more means that every transaction has an epoch of its own; 0 means that the
// feature was never finalized. The request versions a broker advertises say nothing
// about it.
func TransactionVersion(ctx context.Context, cl *kgo.Client) (int, error) {
	return 0, errors.New("changelog: transaction version: not built yet")
}

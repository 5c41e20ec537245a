package changelog

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TransactionVersion returns the finalized transaction.version of the cluster: 2 or
// more means that every transaction has an epoch of its own; 0 means that the
// feature was never finalized. The request versions a broker advertises say nothing
// about it.
func TransactionVersion(ctx context.Context, cl *kgo.Client) (int, error) {
	kresp, err := cl.Request(ctx, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return 0, fmt.Errorf("changelog: read the finalized features: %w", err)
	}
	resp := kresp.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return 0, fmt.Errorf("changelog: read the finalized features: %w", err)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return int(f.MaxVersionLevel), nil
		}
	}
	return 0, nil
}

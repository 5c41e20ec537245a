package changelog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/clock"
)

// fenceParallel bounds the InitProducerID requests in flight. The coordinator takes
// 64 at a time in about 50 ms; more only queue up inside it.
const fenceParallel = 64

// fenceTimeout is the transaction time-out sent along, in milliseconds. It holds for
// a transaction nobody will begin; the owner's next InitProducerID sets its own.
const fenceTimeout = 10_000

// Fence ends whatever transaction the given transactional ids have open and locks
// their owners out, in parallel, each for at most wait: InitProducerID for an id of
// somebody else. An id that never existed is created, which is harmless. The error
// joins one per id that could not be fenced. Never fence an instance that is still a
// member of the group.
func Fence(ctx context.Context, cl *kgo.Client, clk clock.Clock, ids []string, wait time.Duration) error {
	errs := make([]error, len(ids))
	slots := make(chan struct{}, fenceParallel)
	var wg sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = fenceOne(ctx, cl, clk, id, wait)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func fenceOne(ctx context.Context, cl *kgo.Client, clk clock.Clock, id string, wait time.Duration) error {
	start := clk.Now()
	for try := 0; ; try++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = kmsg.StringPtr(id)
		req.TransactionTimeoutMillis = fenceTimeout
		req.ProducerID = -1
		req.ProducerEpoch = -1
		kresp, err := cl.Request(ctx, req)
		if err == nil {
			err = kerr.ErrorForCode(kresp.(*kmsg.InitProducerIDResponse).ErrorCode)
		}
		if err == nil {
			return nil
		}
		// The first answer is regularly CONCURRENT_TRANSACTIONS: it is the request that makes
		// the coordinator abort what is open.
		if !again(err) && !errors.Is(err, kerr.ConcurrentTransactions) || clk.Now().Sub(start) >= wait {
			return fmt.Errorf("changelog: fence %q: %w", id, err)
		}
		if perr := pause(ctx, clk, min(backoff(try), 20*time.Millisecond)); perr != nil {
			return fmt.Errorf("changelog: fence %q: %w", id, perr)
		}
	}
}

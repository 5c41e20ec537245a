package changelog

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/clock"
)

// pause waits d or until ctx ends, whose error it returns.
func pause(ctx context.Context, clk clock.Clock, d time.Duration) error {
	t := clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C():
		return nil
	}
}

// backoff doubles from 2 ms up to 100 ms: most of what is waited for here (a commit
// marker, a new leader) is there within a few milliseconds.
func backoff(try int) time.Duration {
	return min(2*time.Millisecond<<min(try, 6), 100*time.Millisecond)
}

// again reports whether the same request may succeed later: a leader or coordinator on
// the move, or a connection that broke.
func again(err error) bool { return kerr.IsRetriable(err) || kgo.IsRetryableBrokerErr(err) }

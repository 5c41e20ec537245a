package objects

import (
	"context"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// pause waits d or until the context ends, whose error it returns.
func pause(ctx context.Context, clk clock.Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}

package snapshot

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, done atomic.Int64
		check(t, parallel(t.Context(), 3, 10, func(context.Context, int) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			done.Add(1)
			return nil
		}))
		if done.Load() != 10 || most.Load() != 3 {
			t.Errorf("%d done, %d at the same time", done.Load(), most.Load())
		}

		// The first error stops the others and is the one that counts.
		first := errors.New("first")
		done.Store(0)
		err := parallel(t.Context(), 2, 10, func(ctx context.Context, i int) error {
			done.Add(1)
			if i == 1 {
				return first
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, first) || done.Load() != 2 {
			t.Errorf("%v after %d", err, done.Load())
		}
		check(t, parallel(t.Context(), 2, 0, nil))
	})
}

package serve

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/query"
)

// grace is how long questions may take to end when the server closes.
const grace = time.Second

var errClosing = query.Errorf(query.NoOwner, "this instance is closing")

// lifetime is how long a Server answers.
type lifetime struct {
	clock              clock.Clock
	watches, all       context.Context
	endWatches, endAll context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

func (l *lifetime) init(c clock.Clock) {
	l.clock = c
	l.all, l.endAll = context.WithCancel(context.Background())
	l.watches, l.endWatches = context.WithCancel(l.all)
}

// join makes a call one that close waits for. The returned function ends it.
func (l *lifetime) join(ctx context.Context, watch bool) (context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errClosing
	}
	l.calls.Add(1)
	until := l.all
	if watch {
		until = l.watches
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(until, func() { cancel(errClosing) })
	return ctx, func() {
		stop()
		cancel(nil)
		l.calls.Done()
	}, nil
}

// close ends watches at once and questions after a grace, and waits for all.
func (l *lifetime) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.endWatches()
	over := make(chan struct{})
	go func() {
		l.calls.Wait()
		close(over)
	}()
	t := l.clock.NewTimer(grace)
	defer t.Stop()
	select {
	case <-over:
	case <-t.C():
		l.endAll()
		<-over
	}
	l.endAll()
}

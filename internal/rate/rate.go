// Package rate bounds how fast an instance moves bytes in the background: all that shares a limiter stays within its rate
// together.
//
// It must never hold up what a task waits for; that does not ask it. It starts no goroutine, and everything in it may be used by
// several.
package rate

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// burst is how much time's worth of bytes an idle limiter holds for Take: enough not to wait for every block.
const burst = 100 * time.Millisecond

// Limiter hands out bytes at a rate. A nil one has no bound.
type Limiter struct {
	clk  clock.Clock
	rate float64 // bytes per second

	turn chan struct{} // holds one: whose turn it is

	mu   sync.Mutex
	free time.Time // when all that was taken is paid for
}

// New returns a limiter, nil for a rate of zero or less. A nil clock is that of the system.
func New(bytesPerSecond int64, clk clock.Clock) *Limiter {
	if bytesPerSecond <= 0 {
		return nil
	}
	if clk == nil {
		clk = clock.Real()
	}
	return &Limiter{clk: clk, rate: float64(bytesPerSecond), turn: make(chan struct{}, 1)}
}

// BytesPerSecond returns the rate, 0 for no bound.
func (l *Limiter) BytesPerSecond() int64 {
	if l == nil {
		return 0
	}
	return int64(l.rate)
}

// Take takes n bytes and waits until they and what was taken before have been paid for, so that a block of any size passes.
// The error is that of the context, which ends the waiting.
func (l *Limiter) Take(ctx context.Context, n int64) error {
	if l == nil || n <= 0 {
		return ctx.Err()
	}
	l.mu.Lock()
	now := l.clk.Now()
	if earliest := now.Add(-burst); l.free.Before(earliest) {
		l.free = earliest
	}
	wait := l.add(n).Sub(now)
	l.mu.Unlock()
	return l.pause(ctx, wait)
}

// Turn is for who does not know yet how many bytes there will be, and must not wait once that is known. It waits until what was
// taken before the call is paid for; then pay must be called, once and soon, with the number of bytes, which may be 0. There is
// one turn at a time, so that those who come together do not begin together. The error is that of the context.
func (l *Limiter) Turn(ctx context.Context) (pay func(n int64), err error) {
	if l == nil {
		return func(int64) {}, ctx.Err()
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	wait := l.free.Sub(l.clk.Now())
	l.mu.Unlock()
	if err := l.pause(ctx, wait); err != nil {
		<-l.turn
		return nil, err
	}
	return func(n int64) {
		l.mu.Lock()
		if now := l.clk.Now(); l.free.Before(now) {
			l.free = now
		}
		l.add(n)
		l.mu.Unlock()
		<-l.turn
	}, nil
}

// add is called under mu.
func (l *Limiter) add(n int64) time.Time {
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free
}

func (l *Limiter) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := l.clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}

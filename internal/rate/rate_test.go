package rate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/internal/rate"
)

// slack is what an idle limiter gives at once.
const slack = 200 * time.Millisecond

func lasts(t *testing.T, what string, want time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took < want-slack || took > want+slack {
		t.Errorf("%s took %v, want about %v", what, took, want)
	}
}

// What is taken and what is paid for in turns is within one rate.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.New(1000, nil)
		lasts(t, "10,000 bytes of ten", 10*time.Second, func() {
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					for range 10 {
						if i%2 == 0 {
							if err := l.Take(t.Context(), 100); err != nil {
								t.Error(err)
							}
							continue
						}
						pay, err := l.Turn(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						pay(100)
					}
				})
			}
			wg.Wait()
		})
		<-time.After(time.Hour) // is not saved up
		lasts(t, "1,000 bytes", time.Second, func() {
			for range 10 {
				if err := l.Take(t.Context(), 100); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// Those who come together begin one after the other, each when the one before is paid for; the first does not wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.New(1000, nil)
		start := time.Now()
		var mu sync.Mutex
		var begun []time.Duration
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				pay, err := l.Turn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				begun = append(begun, time.Since(start))
				mu.Unlock()
				pay(5000)
			})
		}
		wg.Wait()
		for i, at := range begun {
			if at != time.Duration(i)*5*time.Second {
				t.Errorf("turn %d after %v", i, at)
			}
		}
	})
}

// The context ends both ways of waiting, and who has given up leaves its turn to others.
func TestEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.New(1, nil)
		pay, err := l.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Turn(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		pay(10)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Turn(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		lasts(t, "the next turn", 9*time.Second, func() {
			if _, err := l.Turn(t.Context()); err != nil {
				t.Error(err)
			}
		})
		again, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Take(again, 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestNoBound(t *testing.T) {
	l := rate.New(0, nil)
	if l != nil {
		t.Fatal("a limiter")
	}
	if err := l.Take(t.Context(), 1<<40); err != nil {
		t.Error(err)
	}
	pay, err := l.Turn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pay(1 << 40)
}

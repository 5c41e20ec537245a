package s3

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/clock"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hasty is a clock whose timers fire at once. It notes how long they were set for.
type hasty struct {
	clock.Clock
	mu     sync.Mutex
	pauses []time.Duration
}

func (h *hasty) NewTimer(d time.Duration) clock.Timer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pauses = append(h.pauses, d)
	return h.Clock.NewTimer(0)
}

// storeAt returns a store at a server, without the configuration of whoever runs the test.
func storeAt(t *testing.T, endpoint string, o Options) (*Store, *hasty) {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	t.Setenv("AWS_PROFILE", "")
	o.Endpoint, o.PathStyle = endpoint, true
	if o.Bucket == "" {
		o.Bucket = fakeBucket
	}
	if o.AccessKey == "" {
		o.AccessKey, o.SecretKey = "key", "secret"
	}
	s, err := New(t.Context(), o)
	check(t, err)
	h := &hasty{Clock: clock.Real()}
	s.clk = h
	return s, h
}

func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func read(ctx context.Context, s objects.Store, key string, offset, length int64) ([]byte, error) {
	r, err := s.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// realPauses is the clock of the system.
type realPauses struct{ clock.Clock }

func (realPauses) Now() time.Time                       { return time.Now() }
func (realPauses) NewTimer(d time.Duration) clock.Timer { return clock.Real().NewTimer(d) }

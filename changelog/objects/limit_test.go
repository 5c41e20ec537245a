package objects_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

const (
	mebibyte = 1 << 20
	// slack is what an idle limiter gives at once.
	slack = 200 * time.Millisecond
)

func lasts(t *testing.T, what string, want time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took < want-slack || took > want+slack {
		t.Errorf("%s took %v, want about %v", what, took, want)
	}
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objects.NewMem()
		s := objects.Limit(mem, mebibyte, nil)
		body := make([]byte, 4*mebibyte)
		lasts(t, "a put of 4 MiB", 4*time.Second, func() { check(t, s.Put(t.Context(), "a", objects.Bytes(body))) })
		lasts(t, "a get of 4 MiB", 4*time.Second, func() {
			if got, err := read(t.Context(), s, "a"); err != nil || len(got) != len(body) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
		lasts(t, "a get of 1 MiB", time.Second, func() {
			r, err := s.Get(t.Context(), "a", mebibyte, mebibyte)
			check(t, err)
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			check(t, err)
		})
		// All together get the rate, not each of them; and idle time is not saved up.
		<-time.After(time.Hour)
		lasts(t, "four of 1 MiB", 4*time.Second, func() {
			var wg sync.WaitGroup
			for _, key := range []string{"b", "c", "d", "e"} {
				wg.Go(func() {
					if err := s.Put(t.Context(), key, objects.Bytes(body[:mebibyte])); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	})
}

// twice reads every body two times, as a store does that computes a checksum first.
type twice struct{ objects.Store }

func (s twice) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if _, err := io.Copy(io.Discard, io.NewSectionReader(body, 0, body.Size())); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, body)
}

func TestLimitCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := objects.Limit(twice{objects.NewMem()}, mebibyte, nil)
		lasts(t, "2 MiB, read twice", 2*time.Second, func() {
			check(t, s.Put(t.Context(), "k", objects.Bytes(make([]byte, 2*mebibyte))))
		})
	})
}

func TestLimitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objects.NewMem()
		s := objects.Limit(mem, 1000, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lasts(t, "a put given up", time.Second, func() {
			if err := s.Put(ctx, "k", objects.Bytes(make([]byte, mebibyte))); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		if _, err := read(t.Context(), mem, "k"); !errors.Is(err, objects.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestNoLimit(t *testing.T) {
	mem := objects.NewMem()
	if s := objects.Limit(mem, 0, nil); s != objects.Store(mem) {
		t.Errorf("%T", s)
	}
}

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Files wait by download, then by arrival; one that gives up leaves its place, or its turn, to the next.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(0)
		first, second := q.join(), q.join()
		check(t, q.acquire(t.Context(), second))
		var order []string
		var all sync.WaitGroup
		wait := func(ctx context.Context, name string, download int) {
			all.Go(func() {
				if q.acquire(ctx, download) == nil {
					order = append(order, name) // one at a time has the turn
					q.release()
				}
			})
			synctest.Wait()
		}
		gone := errors.New("gone")
		leaving, leave := context.WithCancelCause(t.Context())
		wait(t.Context(), "second a", second)
		wait(leaving, "leaves", first)
		wait(t.Context(), "first a", first)
		wait(t.Context(), "second b", second)
		wait(t.Context(), "first b", first)
		leave(gone)
		synctest.Wait()
		q.release()
		all.Wait()
		if want := []string{"first a", "first b", "second a", "second b"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
		if err := q.acquire(leaving, first); err != nil {
			t.Errorf("a turn that is free: %v", err)
		}
		if err := q.acquire(leaving, first); !errors.Is(err, gone) {
			t.Errorf("while it waits: %v", err)
		}
		q.release()
		if q.free != 1 || len(q.waiting) != 0 {
			t.Errorf("%d free, %d wait", q.free, len(q.waiting))
		}
	})
}

// slowStore notes when reads of bodies end, and how many there are at a time.
type slowStore struct {
	objects.Store
	mu            sync.Mutex
	running, most int
}

func (s *slowStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	time.Sleep(time.Second) // of the bubble
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	return s.Store.Get(ctx, key, offset, length)
}

// Of two downloads that share a queue the first is ready when half of all files are there, and no more files are fetched at a
// time than the queue allows.
func TestDownloadsOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var files []string
		for i := range 12 {
			files = append(files, fmt.Sprintf("%d.sst", i), fmt.Sprint("content ", i))
		}
		mem := objects.NewMem()
		_, m, _ := mustUpload(t, mem, newDatabase(append(files, "MANIFEST", "m1")...), 1, nil, nil)
		s, q := &slowStore{Store: mem}, NewQueue(4)
		began := time.Now()
		var ready [2]time.Duration
		var all sync.WaitGroup
		for i := range ready {
			all.Go(func() {
				check(t, Verify(t.Context(), s, m, Options{Queue: q}))
				ready[i] = time.Since(began)
			})
			synctest.Wait()
		}
		all.Wait()
		if want := [2]time.Duration{3 * time.Second, 6 * time.Second}; ready != want || s.most != 4 {
			t.Errorf("ready after %v, want %v; %d at a time, want 4", ready, want, s.most)
		}
	})
}

// A file that gives up in the moment in which it gets its turn passes it on.
func TestQueueGrantedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1)
		check(t, q.acquire(t.Context(), q.join()))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if q.acquire(ctx, 2) == nil {
				t.Error("it has not given up")
			}
		})
		synctest.Wait()
		q.mu.Lock()
		leave()  // who waits goes on here
		q.pass() // the turn that is held ends
		q.mu.Unlock()
		all.Wait()
		if q.free != 1 {
			t.Fatalf("%d turns are free", q.free)
		}
	})
}

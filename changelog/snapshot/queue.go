package snapshot

import (
	"context"
	"slices"
	"sync"
)

// Queue bounds how many files several downloads fetch at the same time. The download that began first goes first, so that one task
// after the other is restored, each as fast as everything together allows: side by side all of them would be ready when the last
// one is. It may be used by any number of goroutines.
type Queue struct {
	mu      sync.Mutex
	free    int
	files   int
	next    int
	waiting []*turn // by download, then by arrival
}

// turn is a file that waits.
type turn struct {
	download int
	granted  chan struct{}
}

// NewQueue returns a queue for so many files at a time, at least one.
func NewQueue(files int) *Queue {
	files = max(files, 1)
	return &Queue{free: files, files: files}
}

// join returns the number of a download that begins.
func (q *Queue) join() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next++
	return q.next
}

// acquire waits for the turn of a file of a download.
func (q *Queue) acquire(ctx context.Context, download int) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	t := &turn{download, make(chan struct{})}
	i := 0
	for i < len(q.waiting) && q.waiting[i].download <= download {
		i++
	}
	q.waiting = slices.Insert(q.waiting, i, t)
	q.mu.Unlock()
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else {
		q.pass() // it was granted meanwhile
	}
	return context.Cause(ctx)
}

// release ends the turn of a file.
func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
}

// pass gives a turn that has ended to the next file. It is called under mu.
func (q *Queue) pass() {
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	close(q.waiting[0].granted)
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

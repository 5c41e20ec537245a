package serve

import (
	"context"

	"github.com/tidemark/tidemark/query"
)

// slots bound how many of something there are at a time.
type slots struct {
	what string
	free chan struct{}
}

func newSlots(what string, n int) *slots { return &slots{what, make(chan struct{}, n)} }

// try takes a slot, or fails with Quota.
func (s *slots) try() error {
	select {
	case s.free <- struct{}{}:
		return nil
	default:
		return query.Errorf(query.Quota, "there are %d %s already, which is the limit", cap(s.free), s.what)
	}
}

// wait takes a slot as soon as there is one.
func (s *slots) wait(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return query.Errorf(query.Quota, "there were %d %s until the deadline, which is the limit", cap(s.free), s.what)
	}
}

func (s *slots) done() { <-s.free }

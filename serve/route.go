package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// firstPause and maxPause bound the pauses between attempts to find the owner of a task.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// part is a question about one task.
type part[T any] struct {
	task query.Task
	want query.Want
	// local answers from the state of this instance, remote asks another, with what is left of the deadline.
	local  func(ctx context.Context, v *query.View) (T, error)
	remote func(ctx context.Context, timeout string, c apiv1.QueriesClient) (T, error)
}

// route answers a question about one task, where its owner is. When the owner has no answer because the task moves or is
// restored, or cannot be reached, it looks at the newest map again, until the deadline. An answer is that of one attempt.
func route[T any](ctx context.Context, s *Server, c *call, p part[T]) (T, error) {
	pause := firstPause
	for {
		out, err := attempt(ctx, s, c, p)
		if err == nil || !s.again(c, err) {
			return out, err
		}
		if !s.pause(ctx, &pause) {
			return out, late(ctx, p.task, err)
		}
	}
}

// again says whether another attempt may help.
func (s *Server) again(c *call, err error) bool {
	var e *query.Error
	if !errors.As(err, &e) || !e.Retry() || c.hop {
		return false
	}
	return e.Reason != query.NotOwner || !c.redirect
}

// pause waits a moment, longer each time, and says whether there is time for another attempt.
func (s *Server) pause(ctx context.Context, d *time.Duration) bool {
	timer := s.cfg.Clock.NewTimer(time.Duration((0.5 + s.cfg.Rand()) * float64(*d)))
	defer timer.Stop()
	*d = min(2**d, maxPause)
	select {
	case <-timer.C():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// late is the error of a question whose attempts have all failed.
func late(ctx context.Context, t query.Task, last error) error {
	if context.Cause(ctx) == errClosing {
		return errClosing
	}
	e := *reasoned(last)
	if e.Reason == query.NotOwner {
		// Who asks has not asked for the owner but for an answer.
		e = query.Error{Reason: query.NoOwner, Message: "the owner of the task was not found before the deadline", Err: errors.New(e.Message)}
	}
	if e.Task == (query.Task{}) {
		e.Task = t
	}
	return &e
}

func attempt[T any](ctx context.Context, s *Server, c *call, p part[T]) (out T, err error) {
	m := s.source.Hosts()
	owner, self, known := m.Owner(p.task)
	if self || c.hop || !known {
		out, err = here(ctx, s, p)
		switch {
		case !is(err, query.NotOwner):
			return out, err
		case known && !self:
			return out, notOwner(p.task, owner)
		case c.hop:
			return out, notOwner(p.task, query.Host{})
		}
		return out, &query.Error{Reason: query.NoOwner, Message: "no instance runs the task at the moment", Task: p.task}
	}
	if c.redirect {
		return out, notOwner(p.task, owner)
	}
	out, err = there(ctx, s, c, p, owner)
	if is(err, query.NotOwner) || is(err, query.NoOwner) {
		s.pool.keep(m)
		// This instance may have got the task, and the news of it may still be on their way.
		if out, err := here(ctx, s, p); !is(err, query.NotOwner) {
			return out, err
		}
	}
	return out, err
}

// here answers from the state of this instance.
func here[T any](ctx context.Context, s *Server, p part[T]) (out T, err error) {
	v, err := s.source.View(ctx, p.task, p.want)
	if err != nil {
		return out, err
	}
	defer v.Close()
	return p.local(ctx, v)
}

// patience is how much longer than the deadline of a question its answer from another instance is waited for: the question
// says when it ends, so that the other instance can still tell what was not reached.
const patience = 250 * time.Millisecond

// there asks the owner.
func there[T any](ctx context.Context, s *Server, c *call, p part[T], owner query.Host) (out T, err error) {
	if owner.Endpoint == "" {
		return out, &query.Error{Reason: query.NoOwner, Message: fmt.Sprintf("instance %s, which runs the task, answers no questions", owner.Instance), Task: p.task}
	}
	client, done, err := s.pool.get(owner.Endpoint)
	if err != nil {
		return out, err
	}
	defer done()
	longer, cancel := c.caller, context.CancelFunc(func() {})
	if at, ok := ctx.Deadline(); ok {
		longer, cancel = context.WithDeadline(c.caller, at.Add(patience))
	}
	defer cancel()
	out, err = p.remote(hop(longer), s.left(ctx), client)
	return out, Error(err)
}

func notOwner(t query.Task, owner query.Host) error {
	message := fmt.Sprintf("another instance runs task %s", t)
	if owner.Endpoint != "" {
		message += ": ask " + owner.Endpoint
	}
	return &query.Error{Reason: query.NotOwner, Message: message, Task: t, Host: owner}
}

func is(err error, r query.Reason) bool {
	var e *query.Error
	return errors.As(err, &e) && e.Reason == r
}

// left is the rest of the deadline as a forwarded question says it.
func (s *Server) left(ctx context.Context) string {
	at, ok := ctx.Deadline()
	if !ok {
		return ""
	}
	return max(time.Millisecond, at.Sub(s.cfg.Clock.Now())).String()
}

// forwarded is a copy of a request for another instance.
func forwarded[M proto.Message](m M) M { return proto.Clone(m).(M) }

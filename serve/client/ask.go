package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// firstPause and maxPause bound the pauses between attempts.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// target is what a question is about: the rows of a key, of a partition, or neither.
type target struct {
	store     string
	key       []byte // encoded, nil if it is not known
	partition *int32
}

func (t target) keyed() bool { return t.key != nil || t.partition != nil }

// rotor counts the choices of an endpoint.
type rotor struct{ atomic.Uint32 }

func clone[M proto.Message](m M) M { return proto.Clone(m).(M) }

// bounded gives a question a deadline if it has none.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// ask asks until there is an answer, an error that another attempt does not help, or no time left.
func ask[T any](ctx context.Context, c *Client, t target, call func(ctx context.Context, q apiv1.QueriesClient, direct bool) (T, error)) (T, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	out, f := attempts(ctx, c, t, call)
	if f == nil {
		return out, nil
	}
	var zero T
	return zero, f.err()
}

func attempts[T any](ctx context.Context, c *Client, t target, call func(ctx context.Context, q apiv1.QueriesClient, direct bool) (T, error)) (out T, last *failure) {
	var way way
	for n := 1; ; n++ {
		endpoint, f := c.choose(ctx, t, &way)
		if f == nil {
			f = c.once(ctx, endpoint, func(q apiv1.QueriesClient) (err error) {
				out, err = call(ctx, q, way.direct)
				return err
			})
		}
		switch {
		case f == nil:
			return out, nil
		case ctx.Err() != nil && !f.answered:
			return out, &failure{Error: over(ctx, last, n)}
		case !f.again():
			return out, f
		}
		last = f
		if !c.lost(ctx, &way, endpoint, f) {
			return out, &failure{Error: over(ctx, last, n)}
		}
	}
}

// err is the failure as callers see it.
func (f *failure) err() error {
	if f.meta != nil {
		return &withMeta{f.Error, f.meta}
	}
	return f.Error
}

// withMeta is an error about what was read.
type withMeta struct {
	err  *query.Error
	meta *apiv1.Meta
}

func (e *withMeta) Error() string { return e.err.Error() }
func (e *withMeta) Unwrap() error { return e.err }

// MetaOf returns what was read by a question that has ended with an error, such as query.KeyNotFound; nil if that is not
// known.
func MetaOf(err error) *apiv1.Meta {
	var m *withMeta
	if errors.As(err, &m) {
		return m.meta
	}
	return nil
}

// again says whether another attempt may help.
func (f *failure) again() bool { return f.Retry() }

// way is how the attempts of one question have gone.
type way struct {
	// direct says that the present attempt is at the owner, as far as is known, which says so if it is not.
	direct bool
	// told is the endpoint that an instance has named as that of the owner.
	told string
	// failed is the endpoint of the last attempt that did not help.
	failed string
	// redirects counts the owners that were named one after the other.
	redirects int
	pause     time.Duration
}

// maxRedirects is how often one instance may name another before somebody is asked to find the owner itself.
const maxRedirects = 2

// choose returns where to ask next.
func (c *Client) choose(ctx context.Context, t target, w *way) (string, *failure) {
	w.direct = false
	if t.keyed() && !c.cfg.ViaEndpoints {
		if w.told != "" {
			w.direct = true
			return w.told, nil
		}
		a, f := c.atlas(ctx)
		if f != nil {
			return "", f
		}
		if task, ok := a.task(t.store, t.key, t.partition); ok {
			if e := a.owner(task); e != "" && e != w.failed && w.redirects < maxRedirects && !c.pool.isDown(e, c.clock.Now()) {
				w.direct = true
				return e, nil
			}
		}
	}
	list := c.candidates("")
	if len(list) > 1 && list[0] == w.failed {
		return list[1], nil
	}
	return list[0], nil
}

// lost draws conclusions from an attempt that did not help, and waits unless the next place is known. It says whether there
// is time for another attempt.
func (c *Client) lost(ctx context.Context, w *way, endpoint string, f *failure) bool {
	hint := ""
	if f.answered {
		hint = endpoint
	}
	c.keeper.wrong(hint)
	w.failed, w.told = endpoint, ""
	if f.Reason == query.NotOwner && f.Host.Endpoint != "" && f.Host.Endpoint != endpoint && w.redirects < maxRedirects &&
		!c.pool.isDown(f.Host.Endpoint, c.clock.Now()) {
		w.redirects++
		w.told = f.Host.Endpoint
		return ctx.Err() == nil
	}
	if w.direct && !f.answered {
		return ctx.Err() == nil // somebody else is asked at once
	}
	return c.wait(ctx, &w.pause)
}

// wait waits a moment, longer each time, and says whether there is time left.
func (c *Client) wait(ctx context.Context, d *time.Duration) bool {
	*d = min(max(2**d, firstPause), maxPause)
	timer := c.clock.NewTimer(time.Duration((0.5 + c.cfg.Rand()) * float64(*d)))
	defer timer.Stop()
	select {
	case <-timer.C():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// once makes one call at one endpoint.
func (c *Client) once(ctx context.Context, endpoint string, call func(apiv1.QueriesClient) error) *failure {
	q, done, err := c.pool.get(endpoint)
	if err != nil {
		return &failure{Error: &query.Error{Reason: query.Failed, Message: "no connection to " + endpoint, Err: err}}
	}
	defer done()
	if err = call(q); err == nil {
		c.pool.mark(endpoint, c.clock.Now(), true)
		return nil
	}
	f := failureOf(endpoint, err)
	if f.answered || ctx.Err() == nil && f.Reason == query.NoOwner {
		c.pool.mark(endpoint, c.clock.Now(), f.answered)
	}
	return f
}

// candidates returns all endpoints, in the order in which to ask: the given one, the configured ones, each of them first in
// its turn, then those of the map; those that could not be reached lately come last.
func (c *Client) candidates(first string) []string {
	var list []string
	add := func(e string) {
		if e != "" && !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	add(first)
	n := len(c.cfg.Endpoints)
	turn := int(c.next.Add(1) % uint32(n))
	for i := range n {
		add(c.cfg.Endpoints[(turn+i)%n])
	}
	if a := c.keeper.now.Load(); a != nil && !c.cfg.ViaEndpoints {
		for _, h := range a.hosts.GetHosts() {
			add(h.Endpoint)
		}
	}
	now := c.clock.Now()
	slices.SortStableFunc(list, func(a, b string) int {
		da, db := c.pool.isDown(a, now), c.pool.isDown(b, now)
		switch {
		case da == db:
			return 0
		case da:
			return 1
		}
		return -1
	})
	return list
}

package client

import (
	"context"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Watch yields the events of a watch until ctx ends or the caller breaks off. When the stream ends because a task has moved or
// an instance is gone, it goes on at another one behind the last event, so that nothing is skipped; what the new instance
// does not remember is told anew, with Reset. Complete comes once. An error is the last thing yielded: that of ctx, or one
// that another attempt does not help; and before the watch has begun, that nobody has answered within Config.Timeout.
func (c *Client) Watch(ctx context.Context, req *apiv1.WatchRequest) iter.Seq2[*apiv1.WatchEvent, error] {
	return func(yield func(*apiv1.WatchEvent, error) bool) {
		w := &watch{c: c, req: clone(req), t: target{req.Store, req.RawKey, req.Partition}, yield: yield}
		if f := w.run(ctx); f != nil {
			yield(nil, f.err())
		}
	}
}

// watch is a watch over as many streams as it takes.
type watch struct {
	c     *Client
	req   *apiv1.WatchRequest
	t     target
	yield func(*apiv1.WatchEvent, error) bool

	begun    bool // some stream was accepted
	complete bool // told
	left     bool // the caller has broken off
}

// run follows one stream after the other.
func (w *watch) run(ctx context.Context) *failure {
	start, cancel := context.WithTimeout(ctx, w.c.cfg.Timeout)
	defer cancel()
	limit := start
	var way way
	var last *failure
	for n := 1; ; n++ {
		endpoint, f := w.c.choose(limit, w.t, &way)
		if f == nil {
			var told bool
			told, f = w.stream(ctx, limit, endpoint, way.direct)
			if w.left {
				return nil
			}
			if told {
				last, n = nil, 1
				way.pause, way.redirects, way.failed = 0, 0, ""
			}
		}
		if w.begun {
			limit = ctx
		}
		switch {
		case limit.Err() != nil && !f.answered:
			return &failure{Error: over(limit, last, n)}
		case !f.again() && !(w.begun && f.Reason == query.Quota):
			// Once it has begun, a watch waits for its place where others have gone too.
			return f
		}
		if last = f; !w.c.lost(limit, &way, endpoint, f) {
			return &failure{Error: over(limit, last, n)}
		}
	}
}

// stream follows one stream until it ends, and says whether it has told something. limit bounds how long the instance may
// take to accept it.
func (w *watch) stream(ctx, limit context.Context, endpoint string, direct bool) (told bool, f *failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(limit, cancel)
	f = w.c.once(ctx, endpoint, func(q apiv1.QueriesClient) error {
		w.req.Redirect = direct
		s, err := q.Watch(ctx, w.req)
		if err != nil {
			return err
		}
		// An instance sends the header when it watches; a refusal has none.
		if md, err := s.Header(); err == nil && md != nil && stop() {
			w.begun = true
			w.c.pool.mark(endpoint, time.Time{}, true)
		}
		for {
			e, err := s.Recv()
			if err == io.EOF {
				return status.Error(codes.Unavailable, "the instance has ended the watch")
			}
			if err != nil {
				return err
			}
			told = true
			if e.Token != "" {
				w.req.Token = e.Token
			}
			if e.Complete && w.complete {
				continue
			}
			w.complete = w.complete || e.Complete
			if w.left = !w.yield(e, nil); w.left {
				return nil
			}
		}
	})
	stop()
	return told, f
}

// Event is a part of the rows there are, or what one or several commits of a task have changed.
type Event[K, V any] struct {
	// Partition is the one the event is about, -1 if it is about all.
	Partition int32
	// Rows hold the latest state of what has changed, each row once; Deleted marks those that are gone.
	Rows []Row[K, V]
	// Meta says what the rows were read from.
	Meta Meta
	// Reset says that the rows of the partition are to be forgotten: those there are follow, in this event and the next ones
	// of the partition as long as More is true. It comes at the start, and when the watch was away for longer than changes are
	// kept.
	Reset, More bool
	// Complete says that the rows there are have been told, those of all partitions. It comes once, in an event of its own.
	Complete bool
	// Token goes on behind this event, with From.
	Token string
}

// Watch first tells the rows there are, then what every commit changes, until ctx ends, which is the error that is yielded
// last. See Client.Watch for what happens when tasks move.
//
// In a session, what is told counts as seen. A watch does not wait for the position of a session.
func (r *Reader[K, V]) Watch(ctx context.Context, opts ...Option) iter.Seq2[Event[K, V], error] {
	return r.watch(ctx, opts, func(*apiv1.WatchRequest) error { return nil })
}

// WatchKey watches one key; see Watch.
func (r *Reader[K, V]) WatchKey(ctx context.Context, key K, opts ...Option) iter.Seq2[Event[K, V], error] {
	return r.watch(ctx, opts, func(req *apiv1.WatchRequest) (err error) {
		req.RawKey, err = r.encode(key)
		return err
	})
}

// WatchRange watches the keys from <= key < to, in the order of encoded keys; see Watch.
func (r *Reader[K, V]) WatchRange(ctx context.Context, from, to K, opts ...Option) iter.Seq2[Event[K, V], error] {
	return r.watch(ctx, opts, func(req *apiv1.WatchRequest) (err error) {
		if req.RawFromKey, err = r.encode(from); err == nil {
			req.RawToKey, err = r.encode(to)
		}
		return err
	})
}

// WatchPrefix watches the keys that begin with a key, of stores whose keys are strings or bytes; see Watch.
func (r *Reader[K, V]) WatchPrefix(ctx context.Context, prefix K, opts ...Option) iter.Seq2[Event[K, V], error] {
	return r.watch(ctx, opts, func(req *apiv1.WatchRequest) (err error) {
		req.RawPrefix, err = r.prefix(prefix)
		return err
	})
}

func (r *Reader[K, V]) watch(ctx context.Context, opts []Option, fill func(*apiv1.WatchRequest) error) iter.Seq2[Event[K, V], error] {
	return func(yield func(Event[K, V], error) bool) {
		o := optionsOf(opts)
		req := &apiv1.WatchRequest{Store: r.name, Partition: o.partition, Filter: o.filter, Token: o.token, Raw: true}
		err := fill(req)
		if err == nil {
			bounded, cancel := r.c.bounded(ctx)
			_, err = r.look(bounded)
			cancel()
		}
		if err != nil {
			yield(Event[K, V]{}, err)
			return
		}
		for w, err := range r.c.Watch(ctx, req) {
			var e Event[K, V]
			if err == nil {
				e, err = r.event(w)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// event decodes an event.
func (r *Reader[K, V]) event(w *apiv1.WatchEvent) (e Event[K, V], err error) {
	e = Event[K, V]{Partition: -1, Reset: w.Reset_, More: w.More, Complete: w.Complete, Token: w.Token}
	if w.Partition != nil {
		e.Partition = *w.Partition
	}
	if e.Meta, err = r.saw(w.Meta); err != nil {
		return e, err
	}
	for _, row := range w.Rows {
		out, err := r.row(row, &e.Meta)
		if err != nil {
			return e, err
		}
		e.Rows = append(e.Rows, out)
	}
	return e, nil
}

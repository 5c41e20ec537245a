package serve

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Watch implements the API.
func (v *service) Watch(req *apiv1.WatchRequest, stream grpc.ServerStreamingServer[apiv1.WatchEvent]) error {
	return v.watch(stream.Context(), req, func() { _ = stream.SendHeader(nil) }, stream.Send)
}

// watch sends events until ctx ends or a partition has no answer for too long. It calls ready when the first partition is
// watched.
func (v *service) watch(ctx context.Context, req *apiv1.WatchRequest, ready func(), send func(*apiv1.WatchEvent) error) error {
	_, err := answer(v.s, ctx, "Watch", req, func(ctx context.Context, c *call) (*struct{}, error) {
		slots := v.s.watches
		if c.hop {
			slots = v.s.hopWatches
		}
		if err := slots.try(); err != nil {
			return nil, err
		}
		defer slots.done()
		w, err := v.s.watching(ctx, c, req)
		if err != nil {
			return nil, err
		}
		w.ready = sync.OnceFunc(ready)
		return nil, w.run(ctx, send)
	})
	return err
}

// watching is one watch: it merges those of its partitions.
type watching struct {
	s     *Server
	c     *call
	req   *apiv1.WatchRequest
	st    *query.Store
	keys  query.Range
	parts []int32
	token watchToken
	ready func()
	// open are the partitions whose rows were not told yet.
	open map[int32]bool
}

// watching reads a request.
func (s *Server) watching(ctx context.Context, c *call, req *apiv1.WatchRequest) (*watching, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.cfg.Limits.Timeout, errLate)
	defer cancel()
	st, err := s.counted(limited, req.Store)
	if err != nil {
		return nil, err
	}
	w := &watching{s: s, c: c, req: req, st: st, open: map[int32]bool{}}
	key, keys, err := s.bounds(st, req, given{
		req.Key != nil, req.RawKey != nil, req.FromKey != nil, req.ToKey != nil, req.Prefix != nil,
		req.RawFromKey != nil, req.RawToKey != nil, req.RawPrefix != nil,
	})
	if err != nil {
		return nil, err
	}
	if w.keys = keys; key != nil {
		w.keys = query.Range{From: key, To: append(append([]byte{}, key...), 0)}
	}
	if _, err := parseFilter(req.Filter); err != nil {
		return nil, err
	}
	if w.parts, _, err = s.partitions(st, key, req.Partition); err != nil {
		return nil, err
	}
	q := question{shape: shape{st: st}, method: "Watch", page: query.Page{Range: w.keys}}
	w.token = watchToken{question: q.sum(req.Filter), told: commits{}}
	if req.Token != "" {
		t, err := parseWatchToken(req.Token)
		if err != nil {
			return nil, err
		}
		if t.question != w.token.question {
			return nil, query.Errorf(query.TokenMalformed, "the watch token is that of another question")
		}
		w.token = *t
	}
	for _, p := range w.parts {
		if w.token.told[p] == 0 {
			w.open[p] = true
		}
	}
	return w, nil
}

// run follows the partitions, each on a goroutine of its own unless it is the only one, and sends what they tell.
func (w *watching) run(ctx context.Context, send func(*apiv1.WatchEvent) error) error {
	if err := w.completed(send); err != nil {
		return err
	}
	if len(w.parts) == 1 {
		p := w.parts[0]
		return w.follow(ctx, p, w.token.told[p], func(e *apiv1.WatchEvent) error { return w.tell(e, send) })
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan *apiv1.WatchEvent)
	var all sync.WaitGroup
	for _, p := range w.parts {
		seq := w.token.told[p]
		all.Go(func() {
			var err error
			defer func() { cancel(err) }()
			defer failPanics(&err)
			err = w.follow(ctx, p, seq, func(e *apiv1.WatchEvent) error {
				select {
				case events <- e:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		})
	}
	defer all.Wait()
	for {
		select {
		case e := <-events:
			if err := w.tell(e, send); err != nil {
				cancel(err)
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell sends one event of a partition with the token that goes on behind it.
func (w *watching) tell(e *apiv1.WatchEvent, send func(*apiv1.WatchEvent) error) error {
	p := e.GetPartition()
	if e.Reset_ {
		delete(w.token.told, p)
	}
	whole := !e.More
	if whole {
		w.token.told[p] = e.GetMeta().GetSeq()
	}
	e.Token = w.token.String()
	if err := send(e); err != nil {
		return err
	}
	if !whole || !w.open[p] {
		return nil
	}
	delete(w.open, p)
	return w.completed(send)
}

// completed says that the rows there are have been told, once they have.
func (w *watching) completed(send func(*apiv1.WatchEvent) error) error {
	if w.open == nil || len(w.open) > 0 {
		return nil
	}
	w.open = nil
	return send(&apiv1.WatchEvent{Complete: true, Token: w.token.String()})
}

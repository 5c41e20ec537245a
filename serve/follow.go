package serve

import (
	"context"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// followed is how far the watch of one partition is: seq is the last commit that was told whole, 0 if the rows there are
// have not been told. It outlives the connection to an owner: the next owner goes on behind it.
type followed struct {
	task query.Task
	seq  uint64
	// fresh says that the next event must begin the rows there are.
	fresh bool
	// filling says that more events as of the last commit follow.
	filling bool
	// connected says that the last attempt has found an owner.
	connected bool
}

// follow tells the events of one partition behind a commit, from owner to owner.
func (w *watching) follow(ctx context.Context, p int32, seq uint64, emit func(*apiv1.WatchEvent) error) error {
	f := &followed{task: query.Task{Sub: w.st.Sub, Partition: p}, seq: seq}
	pause := firstPause
	clock := w.s.cfg.Clock
	since := clock.Now()
	for {
		f.connected = false
		err := w.connect(ctx, f, func(e *apiv1.WatchEvent) error { return f.pass(e, emit) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !w.s.again(w.c, err) {
			return err
		}
		if f.connected {
			pause, since = firstPause, clock.Now()
		}
		if clock.Now().Sub(since) >= w.s.cfg.Limits.MaxTimeout || !w.s.pause(ctx, &pause) {
			return late(ctx, f.task, err)
		}
	}
}

// pass takes an event on its way. An event that is no newer than what was told, and does not begin anew, tells nothing.
func (f *followed) pass(e *apiv1.WatchEvent, emit func(*apiv1.WatchEvent) error) error {
	seq := e.GetMeta().GetSeq()
	switch {
	case e.Reset_ && seq < f.seq:
		return &query.Error{Reason: query.Moved, Message: "the owner is behind what was told", Task: f.task}
	case e.Reset_:
		f.fresh = false
	case f.fresh:
		return &query.Error{Reason: query.Moved, Message: "the owner does not begin with the rows there are", Task: f.task}
	case seq <= f.seq && !f.filling:
		return nil
	}
	if err := emit(e); err != nil {
		return err
	}
	if e.Reset_ {
		f.seq = 0
	}
	if f.filling = e.More; !e.More {
		f.seq = seq
	}
	return nil
}

// connect follows the partition at its present owner.
func (w *watching) connect(ctx context.Context, f *followed, emit func(*apiv1.WatchEvent) error) error {
	s := w.s
	f.fresh, f.filling = f.seq == 0, false
	m := s.source.Hosts()
	owner, self, known := m.Owner(f.task)
	if self || w.c.hop || !known {
		err := w.local(ctx, f, emit)
		if is(err, query.NotOwner) {
			if known && !self {
				return notOwner(f.task, owner)
			}
			if w.c.hop {
				return notOwner(f.task, query.Host{})
			}
			return &query.Error{Reason: query.NoOwner, Message: "no instance runs the task at the moment", Task: f.task}
		}
		return err
	}
	if w.c.redirect {
		return notOwner(f.task, owner)
	}
	err := w.remote(ctx, f, owner, emit)
	if is(err, query.NotOwner) || is(err, query.NoOwner) {
		s.pool.keep(m)
		if err := w.local(ctx, f, emit); !is(err, query.NotOwner) {
			return err
		}
	}
	return err
}

// local follows a task of this instance.
func (w *watching) local(ctx context.Context, f *followed, emit func(*apiv1.WatchEvent) error) error {
	filter, err := parseFilter(w.req.Filter)
	if err != nil {
		return err
	}
	h := &shape{st: w.st, raw: w.c.raw, fields: w.c.fields, filter: filter}
	from, err := w.s.source.Watch(ctx, f.task, query.WatchSpec{Store: w.st, Range: w.keys, From: f.seq})
	if err != nil {
		return err
	}
	defer from.Close()
	f.connected = true
	w.ready()
	for first := f.fresh; ; first = false {
		c, err := from.Next(ctx)
		if err != nil {
			return err
		}
		c.Reset = c.Reset || first
		if err := w.split(h, &c, emit); err != nil {
			return err
		}
	}
}

// split makes events of changes, none of them larger than an answer may be.
func (w *watching) split(h *shape, c *query.Changes, emit func(*apiv1.WatchEvent) error) error {
	p := proto.Int32(c.Meta.Task.Partition)
	e := &apiv1.WatchEvent{Partition: p, Reset_: c.Reset, Meta: w.s.metaOf(c.Meta)}
	size, most := 0, w.s.cfg.Limits.Bytes
	for i := range c.Rows {
		row, err := h.row(&c.Rows[i], *p)
		if err != nil {
			return err
		}
		if row == nil {
			gone := query.Row{Key: c.Rows[i].Key, Start: c.Rows[i].Start, End: c.Rows[i].End, Deleted: true}
			if row, err = h.row(&gone, *p); err != nil {
				return err
			}
		}
		n := proto.Size(row)
		if n > most {
			return query.Errorf(query.TooLarge, "a row of %d bytes exceeds the limit of %d for an event", n, most)
		}
		if size += n; size > most {
			e.More = true
			if err := emit(e); err != nil {
				return err
			}
			e, size = &apiv1.WatchEvent{Partition: p, Meta: w.s.metaOf(c.Meta)}, n
		}
		e.Rows = append(e.Rows, row)
	}
	e.More = c.More
	return emit(e)
}

// remote follows a task of another instance.
func (w *watching) remote(ctx context.Context, f *followed, owner query.Host, emit func(*apiv1.WatchEvent) error) error {
	if owner.Endpoint == "" {
		return &query.Error{Reason: query.NoOwner, Message: "the instance that runs the task answers no questions", Task: f.task}
	}
	client, done, err := w.s.pool.get(owner.Endpoint)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(hop(ctx))
	defer cancel() // ends the stream
	r := forwarded(w.req)
	r.Partition, r.Token = proto.Int32(f.task.Partition), ""
	if f.seq > 0 {
		r.Token = (&watchToken{w.token.question, commits{f.task.Partition: f.seq}}).String()
	}
	stream, err := client.Watch(ctx, r)
	if err != nil {
		return Error(err)
	}
	// The owner sends the header once it watches.
	if md, err := stream.Header(); err == nil && md != nil {
		f.connected = true
		w.ready()
	}
	for {
		e, err := stream.Recv()
		if err == io.EOF {
			return &query.Error{Reason: query.Moved, Message: "the owner has ended the watch", Task: f.task}
		}
		if err != nil {
			return Error(err)
		}
		if e.Complete {
			continue
		}
		if err := emit(e); err != nil {
			return err
		}
	}
}

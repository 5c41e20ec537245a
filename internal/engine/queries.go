package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/rebalance"
	"github.com/tidemark/tidemark/store"
)

// Engine is a query.Source. Its answers come from what workers publish after their commits, on the goroutines of those who
// ask: the worker does nothing for them. An answer counts only if the task's lease still stands after it was read.

// Stores returns the stores that can be asked, by name.
func (e *Engine) Stores() []*query.Store { return *e.asked.Load() }

// describeStores notes what can be asked: from the plan alone before the names and counts on the broker are known.
func (e *Engine) describeStores() {
	var out []*query.Store
	if e.subs == nil {
		for _, s := range e.plan.Subs {
			out = append(out, s.Queries...)
		}
	}
	for _, s := range e.subs {
		for _, q := range s.Queries {
			d := *q
			d.Sub, d.Partitions = s.id, s.tasks
			out = append(out, &d)
		}
	}
	slices.SortFunc(out, func(a, b *query.Store) int { return strings.Compare(a.ID, b.ID) })
	e.asked.Store(&out)
}

// Hosts returns the map of the group as the leader last gave it.
func (e *Engine) Hosts() *query.Map {
	e.mgr.mu.Lock()
	a := e.mgr.heard
	e.mgr.mu.Unlock()
	if a == nil {
		return &query.Map{Generation: -1, Self: -1}
	}
	if m := e.hosts.Load(); m != nil && m.of == a {
		return &m.Map
	}
	m := &hostMap{of: a}
	m.Generation, m.Self, m.Owners = a.Generation, a.Self, make(map[string][]int, len(a.Placements))
	for _, h := range a.Hosts {
		m.Map.Hosts = append(m.Map.Hosts, query.Host{Instance: h.Instance, Endpoint: h.Endpoint, Rack: h.Rack})
	}
	for _, p := range a.Placements {
		m.Owners[p.Sub] = p.Owners
	}
	e.hosts.Store(m)
	return &m.Map
}

// hostMap is a map made from what the leader has said.
type hostMap struct {
	query.Map
	of *rebalance.Assignment
}

// taskOf returns a task of this instance.
func (e *Engine) taskOf(id query.Task) (*task, error) {
	e.mgr.mu.Lock()
	t := e.mgr.tasks[processor.TaskID{Sub: id.Sub, Partition: id.Partition}]
	e.mgr.mu.Unlock()
	if t == nil || t.lease.lost() {
		return nil, e.elsewhereIs(id)
	}
	return t, nil
}

// elsewhereIs is the error for a task that is not here.
func (e *Engine) elsewhereIs(id query.Task) error {
	h, self, ok := e.Hosts().Owner(id)
	if !ok || self {
		return &query.Error{Reason: query.NoOwner, Task: id, Message: "the task is on its way from one instance to another"}
	}
	return &query.Error{Reason: query.NotOwner, Task: id, Host: h, Message: "another instance runs the task"}
}

// View returns the state of a task as soon as it is what the reader wants.
func (e *Engine) View(ctx context.Context, id query.Task, w query.Want) (*query.View, error) {
	t, err := e.taskOf(id)
	if err != nil {
		return nil, err
	}
	if err := t.sub.reads(w.Position, id); err != nil {
		return nil, err
	}
	for {
		rung := t.bell.wait()
		p := t.public.Load()
		lack := t.lacks(p, w)
		if lack == nil {
			return t.view(e, p), nil
		}
		if t.lease.lost() {
			return nil, e.elsewhereIs(id)
		}
		if lack.Reason == query.Restoring || lack.Reason == query.TooStale {
			return nil, lack
		}
		select {
		case <-rung:
		case <-ctx.Done():
			return nil, lack
		}
	}
}

// view makes a view of something that was published.
func (t *task) view(e *Engine, p *exposed) *query.View {
	m := p.meta
	if p.stale != nil {
		m.Stale, m.Lag = true, p.stale.lag.Load()
	}
	return query.NewView(m, rows{p.rows}, func() error {
		if t.lease.lost() {
			return &query.Error{Reason: query.Moved, Task: m.Task, Message: "the task has left this instance while it was read"}
		}
		return nil
	}, nil)
}

// lacks says what is missing for an answer, nil for nothing.
func (t *task) lacks(p *exposed, w query.Want) *query.Error {
	id := query.Task{Sub: t.sub.id, Partition: t.id.Partition}
	lack := func(r query.Reason, format string, args ...any) *query.Error {
		err := query.Errorf(r, format, args...)
		err.Task = id
		return err
	}
	if p == nil || p.stale != nil && w.Consistency != query.Stale {
		return lack(query.Restoring, "task %s is being restored", id)
	}
	if p.stale != nil && w.MaxLag > 0 && p.stale.lag.Load() > w.MaxLag {
		return lack(query.TooStale, "task %s is being restored and lacks %d records of its changelogs", id, p.stale.lag.Load())
	}
	if n := w.Position.Commit(id); n > p.meta.Seq {
		return lack(query.PositionNotReached, "task %s is at commit %d, the position is that of commit %d", id, p.meta.Seq, n)
	}
	for _, q := range w.Position {
		if q.Commit || q.Partition != id.Partition {
			continue
		}
		if at, ok := p.meta.Inputs.Offset(q.Name, q.Partition); !ok || at < q.Number {
			return lack(query.PositionNotReached, "task %s has read %s/%d up to offset %d, the position is offset %d", id, q.Name, q.Partition, at, q.Number)
		}
	}
	if w.HasMinWatermark && p.meta.Watermark < w.MinWatermark {
		return lack(query.WatermarkNotReached, "the watermark of task %s is %d, not %d", id, p.meta.Watermark, w.MinWatermark)
	}
	return nil
}

// reads refuses a position in topics that the tasks do not read themselves: nobody could tell when it is reached.
func (s *sub) reads(p query.Position, id query.Task) error {
	for _, topic := range p.Topics() {
		i := slices.Index(s.sources, topic)
		if i < 0 || s.Sources[i].Repartition != "" {
			return &query.Error{Reason: query.InvalidRequest, Task: id, Message: "the store's tasks do not read the topic " + topic +
				" themselves, so a position in it cannot be waited for; wait for a watermark instead"}
		}
	}
	return nil
}

// rows gives errors of a store the names of those who ask.
type rows struct{ *store.Reading }

func (r rows) Get(dst []byte, s int, key []byte) ([]byte, bool, error) {
	b, ok, err := r.Reading.Get(dst, s, key)
	return b, ok, unreadable(err)
}

func (r rows) Scan(s int, lo, hi []byte) (store.Iterator, error) {
	it, err := r.Reading.Scan(s, lo, hi)
	return it, unreadable(err)
}

func (r rows) Group(s int, at []byte) ([]byte, bool, error) {
	p, ok, err := r.Reading.Group(s, at)
	return p, ok, unreadable(err)
}

// unreadable names the errors that the same question will not meet again.
func unreadable(err error) error {
	switch {
	case errors.Is(err, store.ErrOutdated):
		return &query.Error{Reason: query.Moved, Message: "the state has moved on while it was read", Err: err}
	case errors.Is(err, store.ErrClosed):
		return &query.Error{Reason: query.Moved, Message: "the task has left this instance while it was read", Err: err}
	}
	return err
}

package serve

import (
	"context"
	"slices"

	"github.com/tidemark/tidemark/query"
)

// fakeWatcher watches a fakeTask.
type fakeWatcher struct {
	in    *instance
	f     *fakeTask
	epoch int
	spec  query.WatchSpec
	seq   uint64
	begun bool
	// rest are rows there were that were not told yet, as of meta.
	rest []query.Row
	meta query.Meta
}

// Watch implements query.Source.
func (in *instance) Watch(_ context.Context, t query.Task, s query.WatchSpec) (query.Watcher, error) {
	in.c.mu.Lock()
	defer in.c.mu.Unlock()
	f := in.c.tasks[t]
	if f == nil || f.owner != in.id {
		return nil, query.Errorf(query.NotOwner, "not here")
	}
	if f.restoring {
		return nil, query.Errorf(query.Restoring, "restoring")
	}
	return &fakeWatcher{in: in, f: f, epoch: f.epoch, spec: s, seq: s.From, begun: s.From > 0}, nil
}

func (w *fakeWatcher) Close() {
	w.in.c.mu.Lock()
	w.in.closed++
	w.in.c.mu.Unlock()
}

func (w *fakeWatcher) Next(ctx context.Context) (query.Changes, error) {
	for {
		w.in.c.mu.Lock()
		if w.f.epoch != w.epoch {
			w.in.c.mu.Unlock()
			return query.Changes{}, query.Errorf(query.Moved, "gone")
		}
		c, ok := w.next()
		changed := w.f.changed
		w.in.c.mu.Unlock()
		if ok {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return query.Changes{}, query.Errorf(query.Deadline, "no changes")
		}
	}
}

// next is called with the lock of the cluster.
func (w *fakeWatcher) next() (query.Changes, bool) {
	if w.rest != nil {
		return w.part(false), true
	}
	forgotten := len(w.f.log) > 0 && w.seq+1 < w.f.log[0].seq
	if !w.begun || forgotten {
		w.begun, w.seq, w.meta = true, w.f.seq, w.f.meta()
		w.rest = []query.Row{}
		for _, r := range w.f.rows[w.spec.Store.Index] {
			w.add(&w.rest, r.key, r.value)
		}
		return w.part(true), true
	}
	if w.seq >= w.f.seq {
		return query.Changes{}, false
	}
	c := query.Changes{Meta: w.f.meta()}
	var keys [][]byte
	for _, k := range w.f.log {
		if k.seq > w.seq {
			keys = append(keys, k.keys[w.spec.Store.Index]...)
		}
	}
	w.seq = w.f.seq
	slices.SortFunc(keys, slices.Compare)
	for _, key := range slices.CompactFunc(keys, slices.Equal) {
		value, _, _ := fakeRows{of: w.f.rows}.Get(nil, w.spec.Store.Index, key)
		w.add(&c.Rows, key, value)
	}
	return c, len(c.Rows) > 0
}

// part takes some of the rows there are.
func (w *fakeWatcher) part(first bool) query.Changes {
	n := len(w.rest)
	if m := w.in.watchRows; m > 0 {
		n = min(n, m)
	}
	c := query.Changes{Meta: w.meta, Rows: w.rest[:n], Reset: first, More: n < len(w.rest)}
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		w.rest = nil
	}
	return c
}

func (w *fakeWatcher) add(to *[]query.Row, key, value []byte) {
	r, ok, err := query.UserRow(w.spec.Store, key, value)
	if err != nil {
		panic(err)
	}
	if ok && w.spec.Range.Contains(r.Key) {
		*to = append(*to, r)
	}
}

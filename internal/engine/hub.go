package engine

import (
	"sync"

	"github.com/tidemark/tidemark/query"
)

// hub tells watchers of a task what commits have changed. It has a goroutine only while there are watchers; that one looks
// at every changed row of a watched store once per commit, finds the watchers of its key by a table and those of ranges one
// by one, and puts the row where the watcher picks it up. A watcher that has nothing to be told sleeps, so that ten
// thousand of them cost a look-up per changed row and nothing per commit.
type hub struct {
	mu     sync.Mutex
	closed bool
	at     *exposed // up to where watchers have been told
	stores map[int]*audience
	n      int
	quit   chan struct{} // of the goroutine, nil without one
}

// audience is the watchers of one store.
type audience struct {
	store  *query.Store
	keys   map[string]map[*watcher]struct{} // of single keys
	ranges map[*watcher]struct{}
}

// add makes w a watcher from now on: it will be told what comes after what the task has published, which is returned. ok
// is false if the task shows nothing.
func (h *hub) add(e *Engine, t *task, w *watcher) (p *exposed, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p = t.public.Load()
	if h.closed || p == nil || p.stale != nil {
		return nil, false
	}
	if h.n == 0 {
		h.at = p
		h.stores = make(map[int]*audience)
	} else {
		h.advance(p)
	}
	s := h.stores[w.spec.Store.Index]
	if s == nil {
		s = &audience{store: w.spec.Store, keys: make(map[string]map[*watcher]struct{}), ranges: make(map[*watcher]struct{})}
		h.stores[w.spec.Store.Index] = s
	}
	if w.single {
		k := string(w.spec.Range.From)
		if s.keys[k] == nil {
			s.keys[k] = make(map[*watcher]struct{})
		}
		s.keys[k][w] = struct{}{}
	} else {
		s.ranges[w] = struct{}{}
	}
	if h.n++; h.n == 1 {
		quit := make(chan struct{})
		h.quit = quit
		e.mgr.wg.Go(func() { h.run(t, quit) })
	}
	return h.at, true
}

// remove forgets a watcher.
func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stores[w.spec.Store.Index]
	if h.closed || s == nil {
		return
	}
	k := string(w.spec.Range.From)
	if w.single {
		delete(s.keys[k], w)
		if len(s.keys[k]) == 0 {
			delete(s.keys, k)
		}
	} else {
		delete(s.ranges, w)
	}
	if h.n--; h.n == 0 {
		close(h.quit)
		h.quit, h.at, h.stores = nil, nil, nil
	}
}

// run tells watchers of commits until the last one has gone or the task is closed.
func (h *hub) run(t *task, quit chan struct{}) {
	for {
		rung := t.bell.wait()
		h.mu.Lock()
		if p := t.public.Load(); h.quit == quit && p != nil {
			h.advance(p)
		}
		h.mu.Unlock()
		select {
		case <-rung:
		case <-quit:
			return
		}
	}
}

// advance tells watchers what has changed up to p. The lock is held.
func (h *hub) advance(p *exposed) {
	if p.meta.Seq <= h.at.meta.Seq {
		return
	}
	for index, s := range h.stores {
		complete := p.rows.Since(h.at.meta.Seq, index, func(key, row []byte) { s.tell(p, key, row) })
		if !complete {
			s.each(func(w *watcher) { w.lose() })
		}
	}
	h.at = p
}

// tell passes one changed row to those who watch it.
func (s *audience) tell(p *exposed, key, row []byte) {
	r, ok, err := query.UserRow(s.store, key, row)
	if err != nil {
		s.each(func(w *watcher) { w.lose() })
		return
	}
	if !ok {
		return
	}
	for w := range s.keys[string(r.Key)] {
		w.put(p.meta.Seq, key, r)
	}
	for w := range s.ranges {
		if w.spec.Range.Contains(r.Key) {
			w.put(p.meta.Seq, key, r)
		}
	}
}

func (s *audience) each(f func(*watcher)) {
	for _, ws := range s.keys {
		for w := range ws {
			f(w)
		}
	}
	for w := range s.ranges {
		f(w)
	}
}

// close ends all watches: the task leaves the instance.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for _, s := range h.stores {
		s.each(func(w *watcher) { w.end() })
	}
	if h.quit != nil {
		close(h.quit)
	}
	h.quit, h.at, h.stores = nil, nil, nil
}

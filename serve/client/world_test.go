package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve"
	"github.com/tidemark/tidemark/serve/client"
	"github.com/tidemark/tidemark/store"
)

const partitions = 4

// world is an app whose tasks are in memory and move when a test says so, behind real servers on loopback. Instances know
// what they run, and believe in maps that may be old.
type world struct {
	t      testing.TB
	stores []*query.Store

	mu        sync.Mutex
	changed   chan struct{}
	tasks     [partitions]*memTask
	instances []*host
	gen       int32
}

type memTask struct {
	owner, epoch int
	seq          uint64
	rows         [][]memRow // by store, sorted; never changed in place
	log          []memCommit
}

type memRow struct{ key, row []byte }

type memCommit struct {
	seq   uint64
	store int
	keys  [][]byte
}

// host is one instance.
type host struct {
	w        *world
	id       int
	endpoint string
	believes *query.Map // guarded by the lock of the world
}

func newWorld(t testing.TB, n int) *world {
	w := &world{t: t, changed: make(chan struct{})}
	text, number := codec.Erase(codec.String()), codec.Erase(codec.Int64())
	w.stores = []*query.Store{
		{ID: "counts", Kind: query.KeyValue, Value: number},
		{ID: "windows", Kind: query.Window, Value: number, StartOf: func(end int64) int64 { return end - 60_000 }, Windows: "tumbling 1m"},
		{ID: "sessions", Kind: query.Session, Value: number},
		{ID: "prices", Kind: query.Versioned, Value: number},
		{ID: "lists", Kind: query.List, Value: number},
	}
	for i, s := range w.stores {
		s.Index, s.Key, s.Sub, s.Partitions, s.Topics = i, text, "main", partitions, []string{"in"}
	}
	for p := range w.tasks {
		w.tasks[p] = &memTask{owner: p % n, rows: make([][]memRow, len(w.stores))}
	}
	listeners, servers := make([]net.Listener, n), make([]*serve.Server, n)
	for i := range n {
		h := &host{w: w, id: i}
		w.instances = append(w.instances, h)
		var err error
		if servers[i], err = serve.New(h, serve.Config{}); err != nil {
			t.Fatal(err)
		}
		if listeners[i], err = servers[i].Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		h.endpoint = listeners[i].Addr().String()
	}
	w.publish()
	for i, s := range servers {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, listeners[i]) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

func (w *world) client(cfg client.Config) *client.Client {
	for _, h := range w.instances {
		cfg.Endpoints = append(cfg.Endpoints, h.endpoint)
	}
	c, err := client.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) change(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
	close(w.changed)
	w.changed = make(chan struct{})
}

// publish tells all instances, or some, who owns what.
func (w *world) publish(to ...int) {
	w.change(func() {
		w.gen++
		m := query.Map{Generation: w.gen, Owners: map[string][]int{}}
		for _, h := range w.instances {
			m.Hosts = append(m.Hosts, query.Host{Instance: fmt.Sprint("i", h.id), Endpoint: h.endpoint})
		}
		for _, t := range w.tasks {
			m.Owners["main"] = append(m.Owners["main"], t.owner)
		}
		for _, h := range w.instances {
			if len(to) == 0 || slices.Contains(to, h.id) {
				own := m
				own.Self = h.id
				h.believes = &own
			}
		}
	})
}

// move gives a task to another instance, -1: nobody.
func (w *world) move(p int32, to int) {
	w.change(func() { w.tasks[p].owner, w.tasks[p].epoch = to, w.tasks[p].epoch+1 })
}

// commit writes rows of a store, by the keys of its layout, and returns the position of the commit.
func (w *world) commit(p int32, st int, rows map[string][]byte) (at query.Position) {
	w.change(func() {
		t := w.tasks[p]
		t.seq++
		c := memCommit{seq: t.seq, store: st}
		list := slices.Clone(t.rows[st])
		for key, value := range rows {
			k := []byte(key)
			c.keys = append(c.keys, k)
			i, there := slices.BinarySearchFunc(list, k, func(r memRow, k []byte) int { return bytes.Compare(r.key, k) })
			if there {
				list = slices.Delete(list, i, i+1)
			}
			if value != nil {
				list = slices.Insert(list, i, memRow{k, append(binary.BigEndian.AppendUint64(nil, 1000), value...)})
			}
		}
		t.rows[st] = list
		t.log = append(t.log, c)
		at = w.meta(p).Position
	})
	return at
}

func (w *world) meta(p int32) query.Meta {
	t := w.tasks[p]
	return query.Meta{
		Task: query.Task{Sub: "main", Partition: p}, Seq: t.seq, Watermark: 5000,
		Position: query.Position{{Name: "main", Partition: p, Commit: true, Number: int64(t.seq)}},
		Inputs:   query.Position{{Name: "in", Partition: p, Number: int64(t.seq)}},
	}
}

// Stores implements query.Source.
func (h *host) Stores() []*query.Store { return h.w.stores }

// Hosts implements query.Source.
func (h *host) Hosts() *query.Map {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.believes
}

// here returns a task if this instance runs it. The lock is held.
func (h *host) here(t query.Task) (*memTask, error) {
	if t.Sub == "main" && t.Partition >= 0 && t.Partition < partitions && h.w.tasks[t.Partition].owner == h.id {
		return h.w.tasks[t.Partition], nil
	}
	return nil, query.Errorf(query.NotOwner, "another instance runs task %s", t)
}

// View implements query.Source.
func (h *host) View(ctx context.Context, id query.Task, want query.Want) (*query.View, error) {
	w := h.w
	for {
		w.mu.Lock()
		t, err := h.here(id)
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		changed, late := w.changed, query.Reason("")
		offset, _ := want.Position.Offset("in", id.Partition)
		if want.Position.Commit(id) > t.seq || offset > int64(t.seq) {
			late = query.PositionNotReached
		}
		if want.HasMinWatermark && want.MinWatermark > 5000 {
			late = query.WatermarkNotReached
		}
		if late == "" {
			epoch := t.epoch
			v := query.NewView(w.meta(id.Partition), memRows(slices.Clone(t.rows)), func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if t.epoch != epoch {
					return query.Errorf(query.Moved, "task %s has left", id)
				}
				return nil
			}, nil)
			w.mu.Unlock()
			return v, nil
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, query.Errorf(late, "task %s is not there yet", id)
		}
	}
}

// memRows are the rows of a task as of one commit.
type memRows [][]memRow

func (r memRows) Get(dst []byte, st int, key []byte) ([]byte, bool, error) {
	i, ok := slices.BinarySearchFunc(r[st], key, func(r memRow, k []byte) int { return bytes.Compare(r.key, k) })
	if !ok {
		return dst, false, nil
	}
	return append(dst, r[st][i].row...), true, nil
}

func (r memRows) Scan(st int, lo, hi []byte) (store.Iterator, error) {
	return &memIterator{rows: slices.DeleteFunc(slices.Clone(r[st]), func(m memRow) bool {
		return bytes.Compare(m.key, lo) < 0 || hi != nil && bytes.Compare(m.key, hi) >= 0
	})}, nil
}

func (r memRows) Group(st int, at []byte) ([]byte, bool, error) {
	for _, m := range r[st] {
		if bytes.Compare(m.key[:8], at) >= 0 {
			return m.key[:8], true, nil
		}
	}
	return nil, false, nil
}

type memIterator struct {
	rows []memRow
	at   int
}

func (i *memIterator) Next() bool    { i.at++; return i.at <= len(i.rows) }
func (i *memIterator) Key() []byte   { return i.rows[i.at-1].key }
func (i *memIterator) Value() []byte { return i.rows[i.at-1].row }
func (i *memIterator) Err() error    { return nil }
func (i *memIterator) Close() error  { return nil }

// Watch implements query.Source.
func (h *host) Watch(_ context.Context, id query.Task, s query.WatchSpec) (query.Watcher, error) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	t, err := h.here(id)
	if err != nil {
		return nil, err
	}
	return &memWatcher{h: h, p: id.Partition, epoch: t.epoch, spec: s, seq: s.From}, nil
}

type memWatcher struct {
	h     *host
	p     int32
	epoch int
	spec  query.WatchSpec
	seq   uint64
	begun bool
}

func (m *memWatcher) Close() {}

func (m *memWatcher) Next(ctx context.Context) (query.Changes, error) {
	w := m.h.w
	for {
		w.mu.Lock()
		changed, moved := w.changed, w.tasks[m.p].epoch != m.epoch
		var c query.Changes
		ok := false
		if !moved {
			c, ok = m.changes()
		}
		w.mu.Unlock()
		switch {
		case moved:
			return c, query.Errorf(query.Moved, "the task has left")
		case ok:
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c, query.Errorf(query.Deadline, "no changes")
		}
	}
}

// changes returns what was committed since the last call. The lock is held.
func (m *memWatcher) changes() (query.Changes, bool) {
	t, st := m.h.w.tasks[m.p], m.spec.Store
	c := query.Changes{Meta: m.h.w.meta(m.p)}
	var keys [][]byte
	forgotten := len(t.log) > 0 && m.seq+1 < t.log[0].seq
	if !m.begun && m.seq == 0 || forgotten {
		c.Reset = true
		for _, r := range t.rows[st.Index] {
			keys = append(keys, r.key)
		}
	} else {
		for _, k := range t.log {
			if k.seq > m.seq && k.store == st.Index {
				keys = append(keys, k.keys...)
			}
		}
	}
	m.begun, m.seq = true, t.seq
	slices.SortFunc(keys, bytes.Compare)
	for _, key := range slices.CompactFunc(keys, bytes.Equal) {
		row, _, _ := memRows(t.rows).Get(nil, st.Index, key)
		r, ok, err := query.UserRow(st, key, row)
		if err != nil {
			panic(err)
		}
		if ok && m.spec.Range.Contains(r.Key) {
			c.Rows = append(c.Rows, r)
		}
	}
	return c, c.Reset || len(c.Rows) > 0
}

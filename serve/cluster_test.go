package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/store"
)

// A cluster of fake instances: tasks hold rows in memory, and move between instances when a test says so. Instances talk to
// each other over loopback with the real server.

const partitions = 4

type cluster struct {
	t      testing.TB
	stores []*query.Store

	mu        sync.Mutex
	tasks     map[query.Task]*fakeTask
	instances []*instance
	gen       int32

	iterators atomic.Int64 // open ones
}

// fakeTask is one task. Its rows are immutable once committed.
type fakeTask struct {
	task      query.Task
	owner     int // -1: nobody
	epoch     int // counts moves
	restoring bool
	lag       int64
	seq       uint64
	watermark int64
	rows      map[int][]fakeRow // by store
	log       []fakeCommit
	changed   chan struct{} // closed by the next change of anything
	views     int
}

type fakeRow struct{ key, value []byte }

type fakeCommit struct {
	seq  uint64
	meta query.Meta
	keys map[int][][]byte
}

// instance is one instance. Its map is what it believes.
type instance struct {
	c        *cluster
	id       int
	endpoint string
	server   *Server
	client   apiv1.QueriesClient

	mu     sync.Mutex
	believ *query.Map
	// onView, if set, is called before a view is taken.
	onView func(query.Task)
	// watchRows bounds the rows of one Changes. 0: no bound.
	watchRows int
	closed    int // watchers closed
}

type textFormat struct{ schema string }

func (f textFormat) Schema() string { return f.schema }

func (f textFormat) JSON(dst, b []byte) ([]byte, error) {
	switch f.schema {
	case "int64":
		if len(b) != 8 {
			return nil, fmt.Errorf("int64 has 8 bytes, not %d", len(b))
		}
		return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(b)), 10), nil
	case "json":
		return append(dst, b...), nil
	}
	text, err := json.Marshal(string(b))
	return append(dst, text...), err
}

func (f textFormat) Parse(dst, text []byte) ([]byte, error) {
	switch f.schema {
	case "int64":
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the type is int64: %w", err)
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
	case "json":
		if !json.Valid(text) {
			return nil, fmt.Errorf("the type is JSON")
		}
		return append(dst, text...), nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("the type is string: %w", err)
	}
	return append(dst, s...), nil
}

func (f textFormat) ParseText(dst []byte, text string) ([]byte, error) {
	if f.schema == "string" {
		return append(dst, text...), nil
	}
	return f.Parse(dst, []byte(text))
}

// fakeStores are one store of every kind, and one with keys of int64.
func fakeStores() []*query.Store {
	str, js, i64 := textFormat{"string"}, textFormat{"json"}, textFormat{"int64"}
	list := []*query.Store{
		{ID: "counts", Kind: query.KeyValue, Key: str, Value: js},
		{ID: "numbers", Kind: query.KeyValue, Key: i64, Value: i64},
		{ID: "windows", Kind: query.Window, Key: str, Value: js, StartOf: func(end int64) int64 { return end - 10 }, Windows: "tumbling 10ms"},
		{ID: "sessions", Kind: query.Session, Key: str, Value: js},
		{ID: "prices", Kind: query.Versioned, Key: str, Value: js},
		{ID: "lists", Kind: query.List, Key: str, Value: js},
	}
	for i, s := range list {
		s.Index, s.Sub, s.Partitions, s.Topics = i, "main", partitions, []string{"in"}
	}
	return list
}

// newCluster returns a cluster of n instances that serve; task p is at instance p modulo n.
func newCluster(t testing.TB, n int, cfg Config) *cluster {
	c := &cluster{t: t, stores: fakeStores(), tasks: map[query.Task]*fakeTask{}}
	for p := range int32(partitions) {
		task := query.Task{Sub: "main", Partition: p}
		c.tasks[task] = &fakeTask{task: task, owner: int(p) % n, watermark: query.NoWatermark, rows: map[int][]fakeRow{}, changed: make(chan struct{})}
	}
	listeners := make([]net.Listener, n)
	for i := range n {
		in := &instance{c: c, id: i}
		s, err := New(in, cfg)
		if err != nil {
			t.Fatal(err)
		}
		in.server = s
		if listeners[i], err = s.Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		in.endpoint = listeners[i].Addr().String()
		c.instances = append(c.instances, in)
	}
	c.publish()
	for i, in := range c.instances {
		in.serve(t, listeners[i])
	}
	return c
}

// serve runs the server of an instance until the test ends, and connects a client.
func (in *instance) serve(t testing.TB, l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.server.Serve(ctx, l) }()
	conn, err := grpc.NewClient("passthrough:///"+in.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	in.client = apiv1.NewQueriesClient(conn)
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// publish tells all instances, or some, who owns what.
func (c *cluster) publish(to ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	owners := make([]int, partitions)
	for t, f := range c.tasks {
		owners[t.Partition] = f.owner
	}
	var hosts []query.Host
	for _, in := range c.instances {
		hosts = append(hosts, query.Host{Instance: fmt.Sprint("instance-", in.id), Endpoint: in.endpoint})
	}
	for _, in := range c.instances {
		if len(to) > 0 && !slices.Contains(to, in.id) {
			continue
		}
		in.mu.Lock()
		in.believ = &query.Map{Generation: c.gen, Self: in.id, Hosts: hosts, Owners: map[string][]int{"main": slices.Clone(owners)}}
		in.mu.Unlock()
	}
}

// change changes a task and wakes who waits for it.
func (c *cluster) change(p int32, fn func(*fakeTask)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.tasks[query.Task{Sub: "main", Partition: p}]
	fn(f)
	close(f.changed)
	f.changed = make(chan struct{})
}

// move gives a task to another instance, and tells all but the unaware.
func (c *cluster) move(p int32, to int, unaware ...int) {
	c.change(p, func(f *fakeTask) { f.owner, f.epoch = to, f.epoch+1 })
	var aware []int
	for i := range c.instances {
		if !slices.Contains(unaware, i) {
			aware = append(aware, i)
		}
	}
	if len(aware) > 0 {
		c.publish(aware...)
	}
}

// entry is one row to write: a nil value deletes.
type entry struct {
	store string
	key   []byte
	value []byte
	time  int64
}

func kv(st, key, value string) entry {
	e := entry{store: st, key: []byte(key), time: 1}
	if value != "" {
		e.value = []byte(value)
	}
	return e
}

// commit writes rows of one partition, by the keys of the store's layout.
func (c *cluster) commit(p int32, entries ...entry) {
	c.change(p, func(f *fakeTask) {
		f.seq++
		done := fakeCommit{seq: f.seq, keys: map[int][][]byte{}}
		for _, e := range entries {
			i := slices.IndexFunc(c.stores, func(s *query.Store) bool { return s.ID == e.store })
			rows := slices.Clone(f.rows[i])
			at, found := slices.BinarySearchFunc(rows, e.key, func(r fakeRow, k []byte) int { return bytes.Compare(r.key, k) })
			if found {
				rows = slices.Delete(rows, at, at+1)
			}
			if e.value != nil {
				rows = slices.Insert(rows, at, fakeRow{e.key, append(binary.BigEndian.AppendUint64(nil, uint64(e.time)), e.value...)})
			}
			f.rows[i] = rows
			done.keys[i] = append(done.keys[i], e.key)
		}
		done.meta = f.meta()
		f.log = append(f.log, done)
	})
}

// put writes a row where Kafka's partitioner has its key.
func (c *cluster) put(st, key, value string) int32 {
	p := processor.PartitionOf([]byte(key), partitions)
	c.commit(p, kv(st, key, value))
	return p
}

func (f *fakeTask) meta() query.Meta {
	return query.Meta{
		Task: f.task, Seq: f.seq, Watermark: f.watermark, Stale: f.restoring, Lag: f.lag,
		Position: query.Position{{Name: "main", Partition: f.task.Partition, Commit: true, Number: int64(f.seq)}},
	}
}

// Stores implements query.Source.
func (in *instance) Stores() []*query.Store { return in.c.stores }

// Hosts implements query.Source.
func (in *instance) Hosts() *query.Map {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.believ
}

// View implements query.Source.
func (in *instance) View(ctx context.Context, t query.Task, w query.Want) (*query.View, error) {
	in.mu.Lock()
	hook := in.onView
	in.mu.Unlock()
	if hook != nil {
		hook(t)
	}
	for {
		in.c.mu.Lock()
		f := in.c.tasks[t]
		var late query.Reason
		switch {
		case f == nil || f.owner != in.id:
			in.c.mu.Unlock()
			return nil, query.Errorf(query.NotOwner, "not here")
		case f.restoring && w.Consistency != query.Stale:
			in.c.mu.Unlock()
			return nil, query.Errorf(query.Restoring, "restoring")
		case f.restoring && w.MaxLag > 0 && f.lag > w.MaxLag:
			in.c.mu.Unlock()
			return nil, query.Errorf(query.TooStale, "%d records behind", f.lag)
		case w.Position.Commit(t) > f.seq:
			late = query.PositionNotReached
		case w.HasMinWatermark && w.MinWatermark > f.watermark:
			late = query.WatermarkNotReached
		}
		changed := f.changed
		if late == "" {
			v := f.view(in.c)
			in.c.mu.Unlock()
			return v, nil
		}
		in.c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, query.Errorf(late, "not reached")
		}
	}
}

// view is called with the lock of the cluster.
func (f *fakeTask) view(c *cluster) *query.View {
	f.views++
	epoch := f.epoch
	check := func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.epoch != epoch {
			return query.Errorf(query.Moved, "gone")
		}
		return nil
	}
	done := func() {
		c.mu.Lock()
		f.views--
		c.mu.Unlock()
	}
	return query.NewView(f.meta(), fakeRows{c, maps.Clone(f.rows)}, check, done)
}

// held is how many views and iterators are open.
func (c *cluster) held() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.tasks {
		n += f.views
	}
	return n + int(c.iterators.Load())
}

type fakeRows struct {
	c  *cluster
	of map[int][]fakeRow
}

func (r fakeRows) Get(dst []byte, st int, key []byte) ([]byte, bool, error) {
	for _, x := range r.of[st] {
		if bytes.Equal(x.key, key) {
			return append(dst, x.value...), true, nil
		}
	}
	return dst, false, nil
}

func (r fakeRows) Scan(st int, lo, hi []byte) (store.Iterator, error) {
	var in []fakeRow
	for _, x := range r.of[st] {
		if bytes.Compare(x.key, lo) >= 0 && (hi == nil || bytes.Compare(x.key, hi) < 0) {
			in = append(in, x)
		}
	}
	r.c.iterators.Add(1)
	return &fakeIterator{c: r.c, rows: in}, nil
}

func (r fakeRows) Group(st int, at []byte) (prefix []byte, ok bool, err error) {
	for _, x := range r.of[st] {
		if bytes.Compare(x.key, at) >= 0 {
			return x.key[:8], true, nil
		}
	}
	return nil, false, nil
}

type fakeIterator struct {
	c    *cluster
	rows []fakeRow
	at   int
}

func (i *fakeIterator) Next() bool    { i.at++; return i.at <= len(i.rows) }
func (i *fakeIterator) Key() []byte   { return i.rows[i.at-1].key }
func (i *fakeIterator) Value() []byte { return i.rows[i.at-1].value }
func (i *fakeIterator) Err() error    { return nil }
func (i *fakeIterator) Close() error  { i.c.iterators.Add(-1); return nil }

package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/internal/apierror"
)

const partitions = 4

// app is an app of fake instances, whose only rows are those of the store "counts", string to string. Tasks move when a test
// says so. Instances know the truth about tasks, but believe in maps of their own.
type app struct {
	t testing.TB

	mu        sync.Mutex
	changed   chan struct{}
	tasks     [partitions]*task
	instances []*instance
	gen       int32
	stores    []*apiv1.Store
	calls     []string // method and instance of each question
}

type task struct {
	owner int // -1: nobody
	seq   uint64
	rows  map[string]string
	log   []commit
}

type commit struct {
	seq  uint64
	keys []string
}

type instance struct {
	apiv1.UnimplementedQueriesServer
	a      *app
	id     int
	server *grpc.Server
	l      *bufconn.Listener

	// Guarded by the lock of the app.
	believes *apiv1.GetHostsResponse
	hung     bool // answers nothing
	refused  bool // connections are refused
	// fail, if set, is asked before a question is answered.
	fail func(method string) error
	ends chan struct{} // closed: watches end
	// forgets makes watches begin anew whatever they have seen.
	forgets bool
}

func endpoint(i int) string { return fmt.Sprintf("instance-%d:1", i) }

func newApp(t testing.TB, n int) *app {
	a := &app{t: t, changed: make(chan struct{})}
	a.stores = []*apiv1.Store{{Id: "counts", Kind: "key-value", Sub: "main", Partitions: proto.Int32(partitions), Topics: []string{"in"}, KeySchema: "string", ValueSchema: "string"}}
	for p := range a.tasks {
		a.tasks[p] = &task{owner: p % n, rows: map[string]string{}}
	}
	for i := range n {
		in := &instance{a: a, id: i, ends: make(chan struct{})}
		a.instances = append(a.instances, in)
		in.start()
	}
	a.publish()
	t.Cleanup(func() {
		for _, in := range a.instances {
			in.server.Stop()
		}
	})
	return a
}

func (in *instance) start() {
	in.l = bufconn.Listen(1 << 16)
	in.server = grpc.NewServer(grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second}))
	apiv1.RegisterQueriesServer(in.server, in)
	go func() { _ = in.server.Serve(in.l) }()
}

// stop ends an instance as a crash does. Its tasks have no owner, and nobody knows yet.
func (a *app) stop(i int) {
	in := a.instances[i]
	a.change(func() {
		in.refused = true
		for _, t := range a.tasks {
			if t.owner == i {
				t.owner = -1
			}
		}
	})
	in.server.Stop()
}

func (a *app) dial(ctx context.Context, e string) (net.Conn, error) {
	for _, in := range a.instances {
		a.mu.Lock()
		refused := in.refused
		a.mu.Unlock()
		if endpoint(in.id) == e && !refused {
			return in.l.DialContext(ctx)
		}
	}
	return nil, fmt.Errorf("connection to %s refused", e)
}

func (a *app) client(cfg Config) *Client {
	if cfg.Endpoints == nil {
		cfg.Endpoints = []string{endpoint(0)}
	}
	cfg.Dial = a.dial
	cfg.Rand = func() float64 { return 0 }
	c, err := New(cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(c.Close)
	return c
}

func (a *app) change(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
	close(a.changed)
	a.changed = make(chan struct{})
}

// publish tells all instances, or some, who owns what.
func (a *app) publish(to ...int) {
	a.change(func() {
		a.gen++
		for _, in := range a.instances {
			if len(to) > 0 && !slices.Contains(to, in.id) {
				continue
			}
			m := &apiv1.GetHostsResponse{Generation: proto.Int32(a.gen), Self: proto.Int32(int32(in.id)), Owners: map[string]*apiv1.Owners{"main": {}}}
			for _, other := range a.instances {
				if other.refused && other.id == len(a.instances)-1 {
					continue // owners are indexes, so only the last one may be left out
				}
				m.Hosts = append(m.Hosts, &apiv1.Host{Instance: fmt.Sprint("i", other.id), Endpoint: endpoint(other.id)})
			}
			for _, t := range a.tasks {
				m.Owners["main"].Hosts = append(m.Owners["main"].Hosts, int32(t.owner))
			}
			in.believes = m
		}
	})
}

// move gives a task to another instance, -1: nobody. Who believes what stays as it is.
func (a *app) move(p int32, to int) { a.change(func() { a.tasks[p].owner = to }) }

func partitionOf(key string) int32 { return processor.PartitionOf([]byte(key), partitions) }

// put commits rows of one partition: key, value, key, value; an empty value deletes.
func (a *app) put(pairs ...string) (p int32, seq uint64) {
	p = partitionOf(pairs[0])
	a.change(func() {
		t := a.tasks[p]
		t.seq++
		seq = t.seq
		c := commit{seq: seq}
		for i := 0; i < len(pairs); i += 2 {
			if c.keys = append(c.keys, pairs[i]); pairs[i+1] == "" {
				delete(t.rows, pairs[i])
			} else {
				t.rows[pairs[i]] = pairs[i+1]
			}
		}
		t.log = append(t.log, c)
	})
	return p, seq
}

// asked returns the questions since the last call, but those for maps.
func (a *app) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := strings.Join(a.calls, " ")
	a.calls = nil
	return out
}

func reply(r query.Reason, c codes.Code, details ...protoadapt.MessageV1) error {
	s, err := status.New(c, "because").WithDetails(append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(r), Domain: apierror.Domain}}, details...)...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// at runs fn where the task is, with the lock of the app. A question that may not be redirected waits until somebody has it.
func (in *instance) at(ctx context.Context, method string, p int32, redirect bool, position string, fn func(*task) error) error {
	if err := in.enter(ctx, method); err != nil {
		return err
	}
	want, err := query.ParsePosition(position)
	if err != nil {
		return reply(query.TokenMalformed, codes.InvalidArgument)
	}
	a := in.a
	for {
		a.mu.Lock()
		t, changed := a.tasks[p], a.changed
		late := query.PositionNotReached
		switch {
		case t.owner != in.id && redirect:
			m := in.believes
			a.mu.Unlock()
			i := m.Owners["main"].Hosts[p]
			if i < 0 || int(i) == in.id {
				return reply(query.NoOwner, codes.Unavailable)
			}
			return reply(query.NotOwner, codes.FailedPrecondition, &apiv1.Owner{Host: m.Hosts[i], Task: fmt.Sprint("main/", p)})
		case t.owner < 0:
			late = query.NoOwner
		case want.Commit(query.Task{Sub: "main", Partition: p}) <= t.seq:
			err := fn(t)
			a.mu.Unlock()
			return err
		}
		a.mu.Unlock()
		d, _ := ctx.Deadline()
		timer := time.NewTimer(time.Until(d) * 9 / 10)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return reply(late, codes.DeadlineExceeded)
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (in *instance) enter(ctx context.Context, method string) error {
	in.a.mu.Lock()
	fail, hung := in.fail, in.hung
	if method != "" {
		in.a.calls = append(in.a.calls, fmt.Sprint(method, in.id))
	}
	in.a.mu.Unlock()
	if hung {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail != nil {
		return fail(method)
	}
	return nil
}

func meta(p int32, t *task) *apiv1.Meta {
	at := query.Position{{Name: "main", Partition: p, Commit: true, Number: int64(t.seq)}}
	return &apiv1.Meta{Task: fmt.Sprint("main/", p), Partition: proto.Int32(p), Seq: proto.Uint64(t.seq), Position: at.String(), Age: proto.Int64(5)}
}

func row(p int32, key, value string) *apiv1.Row {
	w := &apiv1.Row{Key: raw(key), Partition: proto.Int32(p), Time: proto.Int64(1)}
	if w.Deleted = value == ""; !w.Deleted {
		w.Value = raw(value)
	}
	return w
}

func raw(s string) *apiv1.Datum { return &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: []byte(s)}} }

func (in *instance) ListStores(ctx context.Context, _ *apiv1.ListStoresRequest) (*apiv1.ListStoresResponse, error) {
	if err := in.enter(ctx, ""); err != nil {
		return nil, err
	}
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	return &apiv1.ListStoresResponse{Stores: in.a.stores}, nil
}

func (in *instance) GetHosts(ctx context.Context, _ *apiv1.GetHostsRequest) (*apiv1.GetHostsResponse, error) {
	if err := in.enter(ctx, ""); err != nil {
		return nil, err
	}
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	return in.believes, nil
}

func (in *instance) Get(ctx context.Context, req *apiv1.GetRequest) (out *apiv1.GetResponse, err error) {
	key := cmp.Or(req.GetKey(), string(req.RawKey))
	p := partitionOf(key)
	err = in.at(ctx, "get", p, req.Redirect, req.Position, func(t *task) error {
		v, ok := t.rows[key]
		if !ok {
			return reply(query.KeyNotFound, codes.NotFound, meta(p, t))
		}
		out = &apiv1.GetResponse{Row: row(p, key, v), Meta: meta(p, t)}
		return nil
	})
	return out, err
}

func (in *instance) MultiGet(ctx context.Context, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	out := &apiv1.MultiGetResponse{}
	metas := map[int32]*apiv1.Meta{}
	method := fmt.Sprint("multi", len(req.RawKeys), "@")
	for _, k := range req.RawKeys {
		p := partitionOf(string(k))
		f := &apiv1.Found{Partition: proto.Int32(p)}
		if err := in.at(ctx, method, p, req.Redirect, req.Position, func(t *task) error {
			if metas[p] = meta(p, t); t.rows[string(k)] != "" {
				f.Row = row(p, string(k), t.rows[string(k)])
			}
			return nil
		}); err != nil {
			return nil, err
		}
		method = ""
		out.Found = append(out.Found, f)
	}
	for _, p := range slices.Sorted(maps.Keys(metas)) {
		out.Metas = append(out.Metas, metas[p])
	}
	return out, nil
}

// Scan returns pages of req.Limit rows; a token is partition and last key.
func (in *instance) Scan(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	var p int32
	var after string
	if req.PageToken != "" {
		if _, err := fmt.Sscanf(req.PageToken, "%d/%s", &p, &after); err != nil {
			return nil, reply(query.TokenMalformed, codes.InvalidArgument)
		}
	}
	out := &apiv1.RowsResponse{}
	method := "scan"
	for ; p < partitions; p++ {
		full := false
		err := in.at(ctx, method, p, req.Redirect, req.Position, func(t *task) error {
			out.Metas = append(out.Metas, meta(p, t))
			for _, k := range slices.Sorted(maps.Keys(t.rows)) {
				if k <= after || !strings.HasPrefix(k, string(req.RawPrefix)) || k < string(req.RawFromKey) || req.RawToKey != nil && k >= string(req.RawToKey) {
					continue
				}
				if full = len(out.Rows) == int(req.Limit); full {
					return nil
				}
				out.Rows = append(out.Rows, row(p, k, t.rows[k]))
				out.NextPageToken = fmt.Sprintf("%d/%s", p, k)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if full {
			return out, nil
		}
		method, after = "", ""
	}
	out.NextPageToken = ""
	return out, nil
}

// Watch follows the partition of a key; a token is the number of the last commit told.
func (in *instance) Watch(req *apiv1.WatchRequest, s grpc.ServerStreamingServer[apiv1.WatchEvent]) error {
	key := string(req.RawKey)
	p := partitionOf(key)
	var told uint64
	if req.Token != "" {
		if _, err := fmt.Sscan(req.Token, &told); err != nil {
			return reply(query.TokenMalformed, codes.InvalidArgument)
		}
	}
	in.a.mu.Lock()
	begun := req.Token != "" && !in.forgets
	ends := in.ends
	in.a.mu.Unlock()
	if err := in.at(s.Context(), "watch", p, req.Redirect, "", func(*task) error { return nil }); err != nil {
		return err
	}
	if err := s.SendHeader(nil); err != nil {
		return err
	}
	for {
		in.a.mu.Lock()
		t, changed := in.a.tasks[p], in.a.changed
		e := &apiv1.WatchEvent{Partition: proto.Int32(p), Meta: meta(p, t), Token: fmt.Sprint(t.seq)}
		moved := t.owner != in.id && req.Redirect
		switch {
		case moved:
		case !begun || len(t.log) > 0 && told+1 < t.log[0].seq:
			e.Reset_ = true
			if v, ok := t.rows[key]; ok {
				e.Rows = append(e.Rows, row(p, key, v))
			}
		case told < t.seq && slices.ContainsFunc(t.log, func(c commit) bool { return c.seq > told && slices.Contains(c.keys, key) }):
			e.Rows = append(e.Rows, row(p, key, t.rows[key]))
		default:
			e = nil
		}
		told = t.seq
		in.a.mu.Unlock()
		if moved {
			return reply(query.Moved, codes.Unavailable)
		}
		if e != nil {
			if err := s.Send(e); err != nil {
				return err
			}
		}
		if !begun {
			begun = true
			if err := s.Send(&apiv1.WatchEvent{Complete: true, Token: e.Token}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ends:
			return nil
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

// endWatches makes the watches of an instance end without a word.
func (in *instance) endWatches() {
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	close(in.ends)
	in.ends = make(chan struct{})
}

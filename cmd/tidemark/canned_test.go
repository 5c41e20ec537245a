package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// canned answers every question of a kind with the same rows, and notes what was asked.
type canned struct {
	apiv1.UnimplementedQueriesServer
	mu    sync.Mutex
	asked []string
}

// serveCanned returns the address of a canned server on loopback.
func serveCanned(t testing.TB) (*canned, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, s := &canned{}, grpc.NewServer()
	apiv1.RegisterQueriesServer(s, c)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, l.Addr().String()
}

// note notes a question as JSON in a stable form.
func (c *canned) note(method string, m proto.Message) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	var v any
	if err == nil {
		if err = json.Unmarshal(b, &v); err == nil {
			b, err = json.Marshal(v, json.Deterministic(true))
		}
	}
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, "asked "+method+" "+string(b)+"\n")
}

func (c *canned) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.asked, "")
	c.asked = nil
	return out
}

func no(r query.Reason, c codes.Code, message string, details ...protoadapt.MessageV1) error {
	s, err := status.New(c, message).WithDetails(append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(r), Domain: "tidemark"}}, details...)...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func text(json string) *apiv1.Datum { return &apiv1.Datum{Form: &apiv1.Datum_Json{Json: json}} }

const noon = 1772366400000 // 2026-03-01T12:00:00Z

func cannedMeta(p int32) *apiv1.Meta {
	return &apiv1.Meta{
		Task: fmt.Sprint("totals/", p), Partition: &p, Seq: proto.Uint64(77), Watermark: proto.Int64(noon), Time: proto.Int64(noon + 1500),
		Age: proto.Int64(1234), Position: fmt.Sprintf("totals/%d#77", p),
	}
}

func cannedRow(p int32, key, value string) *apiv1.Row {
	return &apiv1.Row{Key: text(key), Value: text(value), Time: proto.Int64(noon + 250), Partition: &p}
}

func (c *canned) ListStores(context.Context, *apiv1.ListStoresRequest) (*apiv1.ListStoresResponse, error) {
	store := func(id, kind, windows, key, value string) *apiv1.Store {
		return &apiv1.Store{Id: id, Kind: kind, Sub: "totals", Partitions: proto.Int32(4), Topics: []string{"orders"}, Windows: windows, KeySchema: key, ValueSchema: value}
	}
	return &apiv1.ListStoresResponse{Stores: []*apiv1.Store{
		store("prices", "versioned", "", "string", "float64"),
		store("recent", "list", "", "int64", "string"),
		store("totals", "key-value", "", "string", "json:{amount:int,customer:{name:string,city:string,since:time},orders:[string]}"),
		store("per-minute", "window", "tumbling 1m", "string", "int64"),
		store("visits", "session", "session 30m", "string", "int64"),
	}}, nil
}

func (c *canned) GetHosts(context.Context, *apiv1.GetHostsRequest) (*apiv1.GetHostsResponse, error) {
	return &apiv1.GetHostsResponse{Generation: proto.Int32(1)}, nil
}

func (c *canned) Get(_ context.Context, req *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	c.note("Get", req)
	switch req.GetKey() {
	case "absent":
		return nil, no(query.KeyNotFound, codes.NotFound, "the store has no row of that key", cannedMeta(1))
	case "late":
		return nil, no(query.PositionNotReached, codes.DeadlineExceeded, "task totals/1 is at commit 77, the position is that of commit 80")
	case "busy":
		return nil, no(query.Quota, codes.ResourceExhausted, "more than 16 scans at a time")
	case "denied":
		return nil, no("UNAUTHENTICATED", codes.Unauthenticated, "who asks is not known")
	}
	m := cannedMeta(1)
	if req.Consistency == apiv1.Consistency_STALE {
		m.Stale, m.Lag, m.Watermark, m.Age = true, 12, nil, nil
	}
	return &apiv1.GetResponse{Row: cannedRow(1, fmt.Sprintf("%q", req.GetKey()), `{"amount":12345678901234567890,"customer":{"name":"Ada"}}`), Meta: m}, nil
}

func (c *canned) MultiGet(_ context.Context, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	c.note("MultiGet", req)
	out := &apiv1.MultiGetResponse{Metas: []*apiv1.Meta{cannedMeta(0), cannedMeta(1)}}
	for i, k := range req.Keys {
		f := &apiv1.Found{Partition: proto.Int32(int32(i % 3))}
		switch {
		case i%3 == 2:
			f.Missing, out.Missing = true, []int32{2, 3}
		case k != "absent":
			f.Row = cannedRow(int32(i%3), fmt.Sprintf("%q", k), `{"amount":7}`)
		}
		out.Found = append(out.Found, f)
	}
	if len(out.Missing) > 0 && !req.AllowPartial {
		return nil, no(query.Partial, codes.Unavailable, "partitions have no answer", &apiv1.Missing{Partitions: out.Missing})
	}
	return out, nil
}

func (c *canned) rows(method string, req *apiv1.RowsRequest, rows ...*apiv1.Row) (*apiv1.RowsResponse, error) {
	c.note(method, req)
	if req.GetKey() == "x" {
		return nil, no(query.KeyMalformed, codes.InvalidArgument, `"x" is not a int64 (schema int64)`)
	}
	out := &apiv1.RowsResponse{Rows: rows}
	if n := int(req.Limit); n < len(rows) {
		out.Rows, out.NextPageToken = rows[:n], "next"
	} else if req.PageToken == "" && req.Filter != "" {
		out.Rows, out.NextPageToken = rows[:1], "next" // a page may have fewer rows than the limit
	}
	return out, nil
}

func (c *canned) Scan(_ context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	if req.PageToken != "" {
		return c.rows("Scan", req, cannedRow(3, `"z"`, `{"amount":99}`))
	}
	return c.rows("Scan", req, cannedRow(0, `"a"`, `{"amount":1}`), cannedRow(0, `"a much longer key"`, `"plain"`), cannedRow(2, `" odd\n"`, `""`))
}

func span(r *apiv1.Row, start, end int64) *apiv1.Row {
	r.Start, r.End = proto.Int64(noon+start), proto.Int64(noon+end)
	return r
}

func (c *canned) Windows(_ context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return c.rows("Windows", req, span(cannedRow(0, `"a"`, "1"), 0, 60_000), span(cannedRow(0, `"b"`, "200"), 60_000, 120_000))
}

func (c *canned) Sessions(_ context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return c.rows("Sessions", req, span(cannedRow(0, `"a"`, "3"), 17, 1017))
}

func (c *canned) History(_ context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	later, gone := cannedRow(0, `"ACME"`, "10.5"), cannedRow(0, `"ACME"`, "0")
	later.Start, gone.Start, gone.Value = proto.Int64(noon), proto.Int64(noon-1), nil
	return c.rows("History", req, later, gone)
}

func (c *canned) Values(_ context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	first := cannedRow(0, "7", `"one"`)
	first.Index = proto.Int64(0)
	return c.rows("Values", req, first)
}

func (c *canned) Watch(req *apiv1.WatchRequest, s grpc.ServerStreamingServer[apiv1.WatchEvent]) error {
	c.note("Watch", req)
	gone := cannedRow(1, `"a"`, "")
	gone.Value, gone.Deleted = nil, true
	for _, e := range []*apiv1.WatchEvent{
		{Partition: proto.Int32(1), Reset_: true, More: true, Meta: cannedMeta(1), Rows: []*apiv1.Row{cannedRow(1, `"a"`, `{"amount":1}`)}},
		{Partition: proto.Int32(1), Meta: cannedMeta(1), Rows: []*apiv1.Row{cannedRow(1, `"b"`, `{"amount":2}`)}, Token: "t1"},
		{Complete: true, Token: "t1"},
		{Partition: proto.Int32(1), Meta: cannedMeta(1), Rows: []*apiv1.Row{cannedRow(1, `"a"`, `{"amount":3}`), cannedRow(1, `"c"`, `{"amount":4}`)}, Token: "t2"},
		{Partition: proto.Int32(1), Meta: cannedMeta(1), Rows: []*apiv1.Row{gone}, Token: "t3"},
	} {
		if err := s.Send(e); err != nil {
			return err
		}
		if req.GetKey() == "quiet" {
			<-s.Context().Done()
			return s.Context().Err()
		}
	}
	return no(query.Failed, codes.Internal, "the store cannot be read")
}

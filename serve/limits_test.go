package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

func TestDefaults(t *testing.T) {
	want := Limits{
		Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second, Rows: 10_000, Bytes: 4<<20 - 256<<10, Visit: 100_000, Key: 1 << 20, Request: 1 << 20,
		Scans: 16, Watchers: 20_000, Streams: 1000, Header: 5 * time.Second, Body: 10 * time.Second, Idle: 2 * time.Minute, Keepalive: 10 * time.Second,
	}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("%+v", got)
	}
}

// Every limit holds what it says, and not one more.
func TestLimitRows(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Rows: 5}})
	c.fill(5)
	in := c.instances[0]
	for n, want := range map[int32]query.Reason{5: "", 6: query.InvalidRequest, -1: query.InvalidRequest} {
		_, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Limit: n})
		wantReason(t, err, want)
	}
	res, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts"})
	if err != nil || len(res.Rows) != 5 {
		t.Errorf("%v %v", res, err)
	}
	c.put("counts", "k5", "1")
	res, err = in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts"})
	if err != nil || len(res.Rows) != 5 || res.NextPageToken == "" {
		t.Errorf("%v %v", res, err)
	}
	for n, want := range map[int]query.Reason{5: "", 6: query.InvalidRequest} {
		_, err := in.client.MultiGet(context.Background(), &apiv1.MultiGetRequest{Store: "counts", Keys: make([]string, n)})
		wantReason(t, err, want)
	}
}

func TestLimitBytes(t *testing.T) {
	value := strings.Repeat("x", 100)
	row := &apiv1.Row{
		Key: &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: []byte("a")}}, Value: &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: []byte(value)}},
		Time: proto.Int64(1), Partition: proto.Int32(0),
	}
	size := proto.Size(row)
	for extra, want := range map[int]query.Reason{0: "", -1: query.TooLarge} {
		c := newCluster(t, 2, Config{Limits: Limits{Bytes: size + extra}})
		c.commit(0, kv("counts", "a", value), kv("counts", "b", value))
		for _, in := range c.instances {
			_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Raw: true})
			wantReason(t, err, want)
			_, err = in.client.MultiGet(context.Background(), &apiv1.MultiGetRequest{Store: "counts", Keys: []string{"a"}, Partition: proto.Int32(0), Raw: true})
			wantReason(t, err, want)
			_, err = in.client.MultiGet(context.Background(), &apiv1.MultiGetRequest{Store: "counts", Keys: []string{"a", "b"}, Partition: proto.Int32(0), Raw: true})
			wantReason(t, err, query.TooLarge)
			res, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0), Raw: true})
			wantReason(t, err, want)
			if want == "" && (len(res.Rows) != 1 || res.NextPageToken == "") {
				t.Errorf("%v", res)
			}
		}
	}
}

// Pages that are bounded by bytes, over partitions, hold every row once.
func TestPagesByBytes(t *testing.T) {
	c := newCluster(t, 2, Config{Limits: Limits{Bytes: 150}})
	want := c.fill(60)
	for _, in := range c.instances {
		got := pages(t, in.scan, &apiv1.RowsRequest{Store: "counts"}, nil)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q", got)
		}
	}
}

// A filter that lets nothing pass ends a page after so many rows, and the next one goes on.
func TestLimitVisit(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Visit: 300}})
	var all []entry
	for i := range 1000 {
		all = append(all, kv("counts", fmt.Sprintf("k%04d", i), fmt.Sprint(i)))
	}
	c.commit(0, all...)
	n := 0
	got := pages(t, c.instances[0].scan, &apiv1.RowsRequest{Store: "counts", Filter: "value == 999"}, func(*apiv1.RowsResponse) { n++ })
	if len(got) != 1 || n == 0 {
		t.Errorf("%q after %d pages", got, n)
	}
}

func TestLimitKey(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Key: 10}})
	in := c.instances[0]
	for n, want := range map[int]query.Reason{10: query.KeyNotFound, 11: query.TooLarge} {
		key := strings.Repeat("x", n)
		_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: &key})
		wantReason(t, err, want)
		_, err = in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", RawKey: []byte(key)})
		wantReason(t, err, want)
		_, err = in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", JsonKey: &apiv1.Datum{Form: &apiv1.Datum_Json{Json: `"` + key + `"`}}})
		wantReason(t, err, want)
	}
}

func TestLimitRequest(t *testing.T) {
	const limit = 500
	c := newCluster(t, 1, Config{Limits: Limits{Request: limit}})
	in := c.instances[0]
	req := &apiv1.GetRequest{Store: "counts", RawKey: bytes.Repeat([]byte("x"), 100)}
	req.RawKey = bytes.Repeat([]byte("x"), 100+limit-proto.Size(req)-1) // the length takes two bytes
	for extra, want := range map[int]query.Reason{0: query.KeyNotFound, 1: query.TooLarge} {
		req := proto.Clone(req).(*apiv1.GetRequest)
		req.RawKey = append(req.RawKey, make([]byte, extra)...)
		if proto.Size(req) != limit+extra {
			t.Fatal(proto.Size(req))
		}
		_, err := in.client.Get(context.Background(), req)
		wantReason(t, err, want)
	}
	body := `{"key":"a"}`
	for extra, want := range map[int]int{0: 404, 1: 413} {
		code, _, text := in.ask(t, "POST", "/v1/stores/counts:get", body+strings.Repeat(" ", limit-len(body)+extra))
		if code != want {
			t.Errorf("%d %s", code, text)
		}
	}
}

// So many scans at a time, and not one more; one that ends makes room.
func TestLimitScans(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Scans: 3}})
	in := c.instances[0]
	arrived, leave, done := make(chan bool), make(chan bool), make(chan error)
	in.onView = func(query.Task) { arrived <- true; <-leave }
	scan := func() {
		_, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0)})
		done <- err
	}
	for range 3 {
		go scan()
		<-arrived
	}
	go scan()
	wantReason(t, <-done, query.Quota)
	leave <- true
	if err := <-done; err != nil {
		t.Error(err)
	}
	go scan()
	<-arrived
	for range 3 {
		leave <- true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestLimitWatchers(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Watchers: 2}})
	in := c.instances[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range 3 {
		stream, err := in.client.Watch(ctx, &apiv1.WatchRequest{Store: "counts"})
		if err == nil {
			_, err = stream.Recv()
		}
		want := query.Reason("")
		if i == 2 {
			want = query.Quota
		}
		wantReason(t, err, want)
	}
	// Forwarded ones are counted apart: the watches of an instance cannot keep out those of others.
	stream, err := in.client.Watch(metadata.AppendToOutgoingContext(ctx, hopHeader, "1"), &apiv1.WatchRequest{Store: "counts"})
	if err == nil {
		_, err = stream.Recv()
	}
	wantReason(t, err, "")
}

func TestLimitTimeout(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{MaxTimeout: time.Second, Timeout: 20 * time.Millisecond}})
	in := c.instances[0]
	req := &apiv1.GetRequest{Store: "counts", Key: proto.String("a")}
	for text, want := range map[string]query.Reason{
		"1s": query.KeyNotFound, "1000ms": query.KeyNotFound, "1s1ns": query.InvalidRequest, "0s": query.InvalidRequest, "-1s": query.InvalidRequest, "5": query.InvalidRequest,
	} {
		req.Timeout = text
		_, err := in.client.Get(context.Background(), req)
		wantReason(t, err, want)
	}
	// Without a deadline there is one.
	req.Timeout, req.MinWatermark = "", "5"
	_, err := in.client.Get(context.Background(), req)
	wantReason(t, err, query.WatermarkNotReached)
}

// A principal has so many questions and not one more, whatever others ask; time refills.
func TestRate(t *testing.T) {
	clock := newManualClock()
	b := newBuckets(Rate{PerSecond: 2, Burst: 3}, clock)
	for _, who := range []string{"a", "b"} {
		for i := range 5 {
			if got := b.take(who); got != (i < 3) {
				t.Errorf("%s %d: %v", who, i, got)
			}
		}
	}
	clock.advance(500 * time.Millisecond)
	if !b.take("a") || b.take("a") {
		t.Error("half a second refills one token of two a second")
	}
	for i := range 2 * maxBuckets {
		b.take(fmt.Sprint(i))
	}
	if len(b.by) != maxBuckets || b.order.Len() != maxBuckets {
		t.Errorf("%d buckets", len(b.by))
	}
	c := newCluster(t, 1, Config{Rate: Rate{PerSecond: 0.001, Burst: 2}, Clock: clock})
	for i := range 3 {
		want := 200
		if i == 2 {
			want = 429
		}
		if code, _, text := c.instances[0].ask(t, "GET", "/v1/stores", ""); code != want {
			t.Errorf("%d %s", code, text)
		}
	}
}

func TestAuthentication(t *testing.T) {
	var seen []string
	c := newCluster(t, 2, Config{Authenticate: func(_ context.Context, c Caller) (string, error) {
		seen = append(seen, fmt.Sprint(c.Remote != nil, c.Forwarded))
		if c.Authorization == "Bearer good" || c.Forwarded {
			return "ann", nil
		}
		return "", errors.New("no such token")
	}})
	c.commit(0, kv("counts", "a", "1"))
	in := c.instances[1]
	code, h, text := in.ask(t, "GET", "/v1/stores/counts/keys/a?partition=0", "", "Authorization", "Bearer bad")
	if code != 401 || h.Get("WWW-Authenticate") == "" || !strings.Contains(text, string(query.Unauthenticated)) {
		t.Errorf("%d %s", code, text)
	}
	if code, _, text = in.ask(t, "GET", "/v1/stores/counts/keys/a?partition=0", "", "Authorization", "Bearer good"); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	for _, path := range []string{"/v1/stores", "/v1/hosts", "/v1/stores/counts", "/v1/stores/counts/range", "/v1/stores/counts:watch", "/v1/stores/lists/keys/a/values"} {
		if code, _, text = in.ask(t, "GET", path, ""); code != 401 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	_, err := at0(in, context.Background(), "a")
	wantReason(t, err, query.Unauthenticated)
	_, err = at0(in, metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer good"), "a")
	wantReason(t, err, "")
	if !strings.Contains(fmt.Sprint(seen), "true true") {
		t.Errorf("no question was forwarded: %v", seen)
	}
}

// An address that others can reach is refused without TLS and authentication.
func TestUnprotected(t *testing.T) {
	in := &instance{c: &cluster{}, believ: &query.Map{}}
	open := &net.TCPAddr{IP: net.IPv4zero, Port: 1}
	auth := func(context.Context, Caller) (string, error) { return "", nil }
	_, config := selfSigned(t)
	for _, k := range []struct {
		cfg Config
		ok  bool
	}{
		{Config{}, false}, {Config{TLS: config}, false}, {Config{Authenticate: auth}, false}, {Config{TLS: config, Authenticate: auth}, true},
		{Config{PlaintextForAnyone: true}, true},
	} {
		s, err := New(in, k.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.protected(open); (err == nil) != k.ok || err != nil && !errors.Is(err, ErrUnprotected) {
			t.Errorf("%+v: %v", k.cfg, err)
		}
		if err := s.protected(&net.TCPAddr{IP: net.IPv6loopback}); err != nil {
			t.Errorf("loopback: %v", err)
		}
		s.Close()
	}
	s, err := New(in, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Listen("0.0.0.0:0"); !errors.Is(err, ErrUnprotected) {
		t.Errorf("%v", err)
	}
}

func TestMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	c := newCluster(t, 2, Config{Registerer: r, Gatherer: r})
	c.put("counts", "a", "1")
	in := c.instances[0]
	in.ask(t, "GET", "/v1/stores/counts/keys/a", "")
	in.ask(t, "GET", "/v1/stores/counts/keys/none", "")
	_, _, text := in.ask(t, "GET", "/metrics", "")
	for _, want := range []string{
		`tidemark_query_requests_total{method="Get",result="key_not_found"}`, `tidemark_query_requests_total{method="Get",result="ok"}`,
		"tidemark_query_watchers 0", `tidemark_query_latency_seconds_count{method="Get"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// A deadline that comes while rows are read is told as one, in whatever way was asked.
func TestDeadlineWhileReading(t *testing.T) {
	c := newCluster(t, 1, Config{})
	c.fill(100)
	in := c.instances[0]
	in.onView = func(query.Task) { <-time.After(5 * time.Millisecond) }
	_, err := in.client.Scan(t.Context(), &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0), Timeout: "1ms"})
	wantReason(t, err, query.Deadline)
	_, err = in.client.MultiGet(t.Context(), &apiv1.MultiGetRequest{Store: "counts", Keys: slices.Repeat([]string{"k000"}, 100), Timeout: "1ms"})
	wantReason(t, err, query.Deadline)
	if code, _, text := in.ask(t, "GET", "/v1/stores/counts/range?partition=0&timeout=1ms", ""); code != http.StatusGatewayTimeout {
		t.Errorf("%d %s", code, text)
	}
	if res, err := in.client.Scan(t.Context(), &apiv1.RowsRequest{Store: "counts", AllowPartial: true, Timeout: "1ms"}); err != nil || len(res.Missing) == 0 {
		t.Errorf("%v, %v", res, err)
	}
}

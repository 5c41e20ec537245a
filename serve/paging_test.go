package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/store"
)

// pages asks for all pages and returns "partition key" of every row. between is called between pages.
func pages(t testing.TB, ask func(context.Context, *apiv1.RowsRequest) (*apiv1.RowsResponse, error), req *apiv1.RowsRequest, between func(*apiv1.RowsResponse)) []string {
	t.Helper()
	var out []string
	for range 10_000 {
		res, err := ask(context.Background(), req)
		if err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		if req.Limit > 0 && len(res.Rows) > int(req.Limit) {
			t.Fatalf("%d rows, the limit is %d", len(res.Rows), req.Limit)
		}
		for _, r := range res.Rows {
			out = append(out, fmt.Sprint(r.GetPartition(), " ", r.Key.GetJson()))
		}
		if res.NextPageToken == "" {
			return out
		}
		if between != nil {
			between(res)
		}
		req = proto.Clone(req).(*apiv1.RowsRequest)
		req.PageToken = res.NextPageToken
	}
	t.Fatal("pages do not end")
	return nil
}

func (in *instance) scan(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return in.client.Scan(ctx, r)
}

// fill puts keys k000.. and returns them as pages shows them, in order.
func (c *cluster) fill(n int) []string {
	var want []string
	entries := map[int32][]entry{}
	for i := range n {
		key := fmt.Sprintf("k%03d", i)
		p := processor.PartitionOf([]byte(key), partitions)
		entries[p] = append(entries[p], kv("counts", key, fmt.Sprintf(`{"n":%d}`, i)))
	}
	for p := range int32(partitions) {
		c.commit(p, entries[p]...)
		for _, e := range entries[p] {
			want = append(want, fmt.Sprint(p, ` "`, string(e.key), `"`))
		}
	}
	return want
}

// Pages of every size hold every row once, in order, over partitions of several instances, also while tasks move between
// pages.
func TestPages(t *testing.T) {
	c := newCluster(t, 2, Config{})
	want := c.fill(100)
	for _, limit := range []int32{0, 1, 2, 7, 25, 60, 65, 70, 99, 100, 101} {
		got := pages(t, c.instances[0].scan, &apiv1.RowsRequest{Store: "counts", Limit: limit}, nil)
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	n := 0
	got := pages(t, c.instances[1].scan, &apiv1.RowsRequest{Store: "counts", Limit: 9}, func(*apiv1.RowsResponse) {
		c.move(int32(n%partitions), n/partitions%2)
		n++
	})
	if !slices.Equal(got, want) {
		t.Errorf("with moves: %q", got)
	}
}

// An empty key is a key: a page that ends with it has a next one.
func TestPageEndsWithEmptyKey(t *testing.T) {
	c := newCluster(t, 1, Config{})
	p := c.put("counts", "", "1")
	c.commit(p, kv("counts", "a", "2"))
	got := pages(t, c.instances[0].scan, &apiv1.RowsRequest{Store: "counts", Limit: 1, Partition: proto.Int32(p)}, nil)
	if len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestRanges(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.fill(100)
	for _, k := range []struct {
		query string
		want  int
	}{
		{"", 100}, {"from_key=k050", 50}, {"to_key=k050", 50}, {"from_key=k010&to_key=k020", 10}, {"prefix=k09", 10}, {"prefix=k", 100},
		{"key=k001", 1}, {"from_key=k050&to_key=k050", 0}, {"filter=value.n+%3E%3D+90", 10}, {"filter=key+endsWith+%225%22", 10},
		{"raw_prefix=azA5", 10}, {"filter=value.n+%25+2+%3D%3D+0+%26%26+time+%3D%3D+1&limit=10", 10},
	} {
		code, _, text := c.instances[1].ask(t, "GET", "/v1/stores/counts/range?"+k.query, "")
		if n := strings.Count(text, `"key"`); code != 200 || n != k.want {
			t.Errorf("%s: %d rows, want %d: %d %.200s", k.query, n, k.want, code, text)
		}
	}
	for query, want := range map[string]query.Reason{
		"from_key=b&to_key=a": query.InvalidRequest, "prefix=a&key=b": query.InvalidRequest, "prefix=a&from_key=b": query.InvalidRequest,
		"limit=10001": query.InvalidRequest, "limit=-1": query.InvalidRequest, "from=5": query.WrongKind, "page_token=xyz": query.TokenMalformed,
		"filter=value.n+%3E": query.InvalidRequest, "filter=other+%3E+1": query.InvalidRequest, "filter=value.m+%3E+1": query.InvalidRequest,
		"filter=1": query.InvalidRequest, "filter=count(1..100000,true)+%3E+1": query.InvalidRequest,
		"filter=any([1],any([1],any([1],true)))": query.InvalidRequest,
	} {
		code, _, text := c.instances[1].ask(t, "GET", "/v1/stores/counts/range?"+query, "")
		if code != 400 || !strings.Contains(text, string(want)) {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
}

// A page token is good for its own question only.
func TestTokenOfAnotherQuestion(t *testing.T) {
	c := newCluster(t, 1, Config{})
	c.fill(20)
	in := c.instances[0]
	res, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []*apiv1.RowsRequest{
		{Store: "numbers"}, {Store: "counts", Prefix: proto.String("k")}, {Store: "counts", Filter: "true"},
		{Store: "counts", Key: proto.String("k000")}, {Store: "counts", Partition: proto.Int32(3)},
	} {
		req.PageToken = res.NextPageToken
		_, err := in.client.Scan(context.Background(), req)
		wantReason(t, err, query.TokenMalformed)
	}
}

// A later page is not as of an earlier commit, whoever answers it: the new owner of a task waits until it has the commit.
func TestPageNeverGoesBack(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"), kv("counts", "b", "1"))
	c.commit(0, kv("counts", "b", "2"))
	req := &apiv1.RowsRequest{Store: "counts", Limit: 1, Partition: proto.Int32(0)}
	res, err := c.instances[0].client.Scan(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	// The task moves to an instance that is at the first commit still.
	var old fakeTask
	c.change(0, func(f *fakeTask) {
		old = *f
		f.owner, f.epoch, f.seq = 1, f.epoch+1, 1
		f.rows = map[int][]fakeRow{0: {{[]byte("a"), []byte("\x00\x00\x00\x00\x00\x00\x00\x011")}, {[]byte("b"), []byte("\x00\x00\x00\x00\x00\x00\x00\x011")}}}
	})
	c.publish()
	req.PageToken = res.NextPageToken
	late := proto.Clone(req).(*apiv1.RowsRequest)
	late.Timeout = "30ms"
	for _, in := range c.instances {
		_, err = in.client.Scan(context.Background(), late)
		wantReason(t, err, query.PositionNotReached)
	}
	c.change(0, func(f *fakeTask) { f.seq, f.rows = old.seq, old.rows })
	for _, in := range c.instances {
		res, err := in.client.Scan(context.Background(), req)
		if err != nil || len(res.Rows) != 1 || res.Rows[0].Value.GetJson() != "2" {
			t.Errorf("%v %v", res, err)
		}
	}
}

func window(st, key string, end int64) entry {
	return entry{store: st, key: store.AppendWindowKey(nil, end, []byte(key)), value: []byte(fmt.Sprint(end)), time: end}
}

// Windows of one key are exactly its own, whatever other keys look like.
func TestWindowsOfOneKey(t *testing.T) {
	c := newCluster(t, 2, Config{})
	for _, key := range []string{"a", "aa", "a\x00", "b"} {
		p := processor.PartitionOf([]byte(key), partitions)
		c.commit(p, window("windows", key, 10), window("windows", key, 20), window("windows", key, 30))
	}
	in := c.instances[0]
	for query, want := range map[string]int{
		"": 3, "from=0&to=20": 3, "from=1": 2, "to=10": 2, "from=10&to=10": 1, "at=0": 1, "at=9": 1, "at=10": 1, "at=29": 1, "at=30": 0, "at=-1": 0,
		"from=1970-01-01T00:00:00.010Z": 2,
	} {
		code, _, text := in.ask(t, "GET", "/v1/stores/windows/keys/a/windows?"+query, "")
		if n := strings.Count(text, `"key":"a"`); code != 200 || n != want || strings.Count(text, `"key"`) != n {
			t.Errorf("%s: %d, want %d: %d %s", query, n, want, code, text)
		}
	}
	code, _, text := in.ask(t, "GET", "/v1/stores/windows/windows?at=15", "")
	if n := strings.Count(text, `"start":10,"end":20`); code != 200 || n != 4 {
		t.Errorf("%d %s", code, text)
	}
	for path, want := range map[string]query.Reason{
		"/v1/stores/windows/windows?at=1&from=2": query.InvalidRequest, "/v1/stores/windows/windows?from=2&to=1": query.InvalidRequest,
		"/v1/stores/counts/windows": query.WrongKind, "/v1/stores/windows/sessions": query.WrongKind,
	} {
		code, _, text := in.ask(t, "GET", path, "")
		if code != 400 || !strings.Contains(text, string(want)) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// Windows of a range of keys over several partitions come by partition, end and key.
func TestWindowsOverPartitions(t *testing.T) {
	c := newCluster(t, 2, Config{})
	want := []string{}
	for p := range int32(partitions) {
		var all []entry
		for end := int64(10); end <= 100; end += 10 {
			for _, key := range []string{"x", "y", "z"} {
				all = append(all, window("windows", key, end))
				if start := end - 10; start >= 10 && start <= 50 && key != "z" {
					want = append(want, fmt.Sprintf(`%d "%s"`, p, key))
				}
			}
		}
		c.commit(p, all...)
	}
	for _, limit := range []int32{0, 1, 3, 10} {
		req := &apiv1.RowsRequest{Store: "windows", From: "10", To: "50", FromKey: proto.String("x"), ToKey: proto.String("z"), Limit: limit}
		got := pages(t, c.instances[0].windows, req, nil)
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

func TestSessionsHistoryValues(t *testing.T) {
	c := newCluster(t, 2, Config{})
	p := processor.PartitionOf([]byte("a"), partitions)
	session := func(start, end int64) entry {
		return entry{"sessions", store.AppendSessionKey(nil, []byte("a"), store.Span{Start: start, End: end}), []byte(`1`), 1}
	}
	version := func(from int64, text string) entry {
		return entry{"prices", store.AppendVersionKey(nil, []byte("a"), from), append([]byte{1}, text...), from}
	}
	value := func(i uint64) entry {
		return entry{"lists", store.AppendListKey(nil, []byte("a"), i), append([]byte{1}, fmt.Sprint(i)...), 1}
	}
	c.commit(p, session(0, 10), session(20, 31), version(10, `"ten"`), version(20, `"twenty"`), version(30, `"thirty"`), value(0), value(1))
	for path, want := range map[string]string{
		"sessions/keys/a/sessions?from=0&to=9": `"start":0,"end":10`,
		"sessions/sessions?at=25":              `"start":20,"end":31`,
		"prices/keys/a":                        `"value":"thirty"`,
		"prices/keys/a?as_of=29":               `"value":"twenty"`,
		"prices/keys/a/history?from=12&to=25":  `"value":"twenty","start":20,"time":20,"partition":` + fmt.Sprint(p) + `},{"key":"a","value":"ten"`,
		"prices/range?at=12":                   `"value":"ten"`,
		"lists/keys/a/values?limit=1":          `"value":0,"index":0`,
		"lists/keys/a/values":                  `"index":1`,
	} {
		code, _, text := c.instances[0].ask(t, "GET", "/v1/stores/"+path, "")
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	code, _, text := c.instances[0].ask(t, "GET", "/v1/stores/prices/keys/a?as_of=9", "")
	if code != 404 || !strings.Contains(text, string(query.KeyNotFound)) {
		t.Errorf("%d %s", code, text)
	}
}

func (in *instance) windows(ctx context.Context, r *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return in.client.Windows(ctx, r)
}

// Between two pages, and when who asked has gone, a scan holds neither a view nor an iterator, which would keep files of the database
// from being removed: it may be left at any place.
func TestScanLeft(t *testing.T) {
	c := newCluster(t, 1, Config{})
	c.fill(100)
	in := c.instances[0]
	for range 50 {
		res, err := in.scan(t.Context(), &apiv1.RowsRequest{Store: "counts", Limit: 3})
		if err != nil || res.NextPageToken == "" {
			t.Fatal(res, err)
		}
		if n := c.held(); n > 0 {
			t.Fatalf("%d views and iterators are open after a page", n)
		}
	}
	arrived, leave := make(chan bool), make(chan bool)
	in.onView = func(query.Task) { arrived <- true; <-leave }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := in.scan(ctx, &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0)})
		done <- err
	}()
	<-arrived
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
	close(leave)
	in.server.Close() // waits for what is under way
	if n := c.held(); n > 0 {
		t.Fatalf("%d views and iterators are open after a scan that was left", n)
	}
}

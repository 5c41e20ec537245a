package queries

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// noon is when the records of these tests happen.
var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// filled is a world of two instances whose stores hold known rows: eight fruits, of each as many events as its place, prices
// a minute apart.
func filled(t *testing.T) (w *world, at query.Position) {
	w = newWorld(t)
	w.start("a")
	w.start("b")
	w.ready()
	for i, k := range fruits {
		for range i + 1 {
			at = at.Merge(w.send("events", k, "x", noon))
		}
		for m := range 3 {
			at = at.Merge(w.send("prices", k, fmt.Sprintf(`{"cents":%d,"shop":"s%d"}`, 100*i+m, m), noon.Add(time.Duration(m)*time.Minute)))
		}
	}
	return w, at
}

var fruits = []string{"apple", "banana", "cherry", "date", "elder", "fig", "grape", "honeydew"}

// dial returns a plain gRPC client of an instance.
func (n *instance) dial() apiv1.QueriesClient {
	n.w.t.Helper()
	n.once.Do(n.connect)
	return n.rpc
}

func (n *instance) connect() {
	conn, err := grpc.NewClient(n.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.w.t.Cleanup(func() { conn.Close() })
	n.rpc = apiv1.NewQueriesClient(conn)
}

// about returns what of a position the tasks that read a topic understand, as text for a question.
func about(p query.Position, topic string) string {
	var out query.Position
	for _, q := range p {
		if q.Name == topic {
			out = append(out, q)
		}
	}
	return out.String()
}

// Every method answers the same over gRPC and over REST, from either instance, about keys of its own and of the other.
func TestEndpoints(t *testing.T) {
	w, at := filled(t)
	for _, n := range w.nodes() {
		q, ctx := n.dial(), t.Context()
		for i, k := range fruits {
			got, err := q.Get(ctx, &apiv1.GetRequest{Store: "counts", Key: &k, Position: about(at, "events")})
			if err != nil || got.Row.Value.GetJson() != fmt.Sprint(i+1) || got.Meta.GetSeq() == 0 {
				t.Errorf("%s: Get %s: %v, %v", n.name, k, got, err)
			}
		}
		if s, err := q.ListStores(ctx, &apiv1.ListStoresRequest{}); err != nil || len(s.Stores) != 5 {
			t.Errorf("ListStores: %v, %v", s, err)
		}
		if s, err := q.GetStore(ctx, &apiv1.GetStoreRequest{Store: "minutes"}); err != nil || s.Kind != "window" || s.GetPartitions() != partitions {
			t.Errorf("GetStore: %v, %v", s, err)
		}
		if h, err := q.GetHosts(ctx, &apiv1.GetHostsRequest{}); err != nil || len(h.Hosts) != 2 || len(h.Owners) != 2 {
			t.Errorf("GetHosts: %v, %v", h, err)
		}
		if m, err := q.MultiGet(ctx, &apiv1.MultiGetRequest{Store: "counts", Keys: append(fruits, "none")}); err != nil || len(m.Found) != 9 || m.Found[7].Row.Value.GetJson() != "8" || m.Found[8].Row != nil {
			t.Errorf("MultiGet: %v, %v", m, err)
		}
		seen := map[string]string{}
		for token := ""; ; {
			page, err := q.Scan(ctx, &apiv1.RowsRequest{Store: "counts", Limit: 3, PageToken: token, Position: ""})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				seen[r.Key.GetJson()] = r.Value.GetJson()
			}
			if token = page.NextPageToken; token == "" {
				break
			}
		}
		if len(seen) < 8 || seen[`"fig"`] != "6" {
			t.Errorf("Scan: %v", seen)
		}
		fig, prices := "fig", about(at, "prices")
		if r, err := q.Windows(ctx, &apiv1.RowsRequest{Store: "minutes", Key: &fig, From: "2026-01-05T12:01:00Z", Position: prices}); err != nil || len(r.Rows) != 2 || r.Rows[0].GetStart() != noon.Add(time.Minute).UnixMilli() {
			t.Errorf("Windows: %v, %v", r, err)
		}
		if r, err := q.Windows(ctx, &apiv1.RowsRequest{Store: "minutes", At: fmt.Sprint(noon.UnixMilli() + 5)}); err != nil || len(r.Rows) != 8 {
			t.Errorf("Windows of all keys: %v, %v", r, err)
		}
		if r, err := q.Sessions(ctx, &apiv1.RowsRequest{Store: "sessions", Key: &fig, Position: prices}); err != nil || len(r.Rows) == 0 {
			t.Errorf("Sessions: %v, %v", r, err)
		}
		if r, err := q.History(ctx, &apiv1.RowsRequest{Store: "history", Key: &fig, Position: prices}); err != nil || len(r.Rows) != 3 || r.Rows[0].Value.GetJson() != `{"cents":502,"shop":"s2"}` {
			t.Errorf("History: %v, %v", r, err)
		}
		if g, err := q.Get(ctx, &apiv1.GetRequest{Store: "history", Key: &fig, AsOf: "2026-01-05T12:01:30Z", Fields: []string{"cents"}}); err != nil || g.Row.Value.GetJson() != `{"cents":501}` {
			t.Errorf("Get as of: %v, %v", g, err)
		}
		if r, err := q.Values(ctx, &apiv1.RowsRequest{Store: "shops", Key: &fig, Position: prices}); err != nil || len(r.Rows) != 3 || r.Rows[2].Value.GetJson() != `"s2"` {
			t.Errorf("Values: %v, %v", r, err)
		}
		if r, err := q.Scan(ctx, &apiv1.RowsRequest{Store: "history", Filter: `value.cents > 600 && key startsWith "h"`}); err != nil || len(r.Rows) != 1 {
			t.Errorf("Scan with a filter: %v, %v", r, err)
		}
		watch(t, w, q)
	}
}

// watch sees the rows there are and then a change.
func watch(t *testing.T, w *world, q apiv1.QueriesClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := q.Watch(ctx, &apiv1.WatchRequest{Store: "counts"})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	sent := false
	for {
		e, err := stream.Recv()
		if err != nil {
			t.Errorf("watch: %v after %v", err, rows)
			return
		}
		for _, r := range e.Rows {
			rows[r.Key.GetJson()] = r.Value.GetJson()
		}
		switch {
		case e.Complete:
			if len(rows) < 8 || rows[`"fig"`] != "6" {
				t.Errorf("the rows there are: %v", rows)
			}
			w.send("events", "zucchini", "x", noon)
			sent = true
		case sent && rows[`"zucchini"`] != "":
			w.send("events", "zucchini", "x", noon)
			return
		}
	}
}

// REST says the same in JSON, with the codes of HTTP.
func TestREST(t *testing.T) {
	w, at := filled(t)
	n := w.nodes()[0]
	position := "?position=" + strings.ReplaceAll(about(at, "events"), "#", "%23")
	w.await("the counts", func() bool {
		code, _, _ := n.rest("GET", "/v1/stores/counts/keys/honeydew"+position, "")
		return code == http.StatusOK
	})
	for _, row := range []struct {
		method, path, body string
		code               int
		want               string // a part of the answer
	}{
		{"GET", "/v1/stores", "", 200, `"id":"counts"`},
		{"GET", "/v1/stores/counts", "", 200, `"key_schema":"string"`},
		{"GET", "/v1/hosts", "", 200, `"owners"`},
		{"GET", "/v1/stores/counts/keys/fig" + position, "", 200, `"value":6`},
		{"GET", "/v1/stores/counts/keys/none", "", 404, `KEY_NOT_FOUND`},
		{"GET", "/v1/stores/none/keys/fig", "", 404, `STORE_NOT_FOUND`},
		{"GET", "/v1/stores/minutes/keys/fig", "", 400, `WRONG_KIND`},
		{"GET", "/v1/stores/minutes/keys/fig/windows?from=2026-01-05T12:01:00Z&to=2026-01-05T12:01:00Z&position=" + about(at, "prices"), "", 200, `"value":1`},
		{"GET", "/v1/stores/minutes/windows?at=2026-01-05T12:00:30Z", "", 200, `"honeydew"`},
		{"GET", "/v1/stores/sessions/keys/fig/sessions", "", 200, `"rows"`},
		{"GET", "/v1/stores/history/keys/fig/history", "", 200, `"cents":501`},
		{"GET", "/v1/stores/history/keys/fig?as_of=2026-01-05T12:00:30Z", "", 200, `{"cents":500,"shop":"s0"}`},
		{"GET", "/v1/stores/shops/keys/fig/values", "", 200, `"s1"`},
		{"GET", "/v1/stores/counts/range?prefix=ha", "", 200, `{`},
		{"GET", "/v1/stores/counts/range?limit=1", "", 200, `"next_page_token"`},
		{"POST", "/v1/stores/counts:multiGet", `{"keys":["fig","grape"]}`, 200, `"value":7`},
		{"POST", "/v1/stores/history:scan", `{"filter":"value.cents == 702"}`, 200, `"honeydew"`},
		{"GET", "/v1/stores/counts/range?page_token=abc", "", 400, `TOKEN_MALFORMED`},
		{"GET", "/v1/stores/counts/keys/fig?position=events/3@999999&timeout=50ms&partition=3", "", 425, `POSITION_NOT_REACHED`},
		{"GET", "/v1/stores/minutes/keys/fig/windows?min_watermark=2027-01-01T00:00:00Z&timeout=50ms", "", 425, `WATERMARK_NOT_REACHED`},
		{"GET", "/v1/openapi.json", "", 200, `"swagger"`},
		{"GET", "/healthz", "", 200, ``},
		{"GET", "/readyz", "", 200, ``},
	} {
		code, body, _ := n.rest(row.method, row.path, row.body)
		if compact := strings.ReplaceAll(strings.ReplaceAll(body, " ", ""), "\n", ""); code != row.code || !strings.Contains(compact, strings.ReplaceAll(row.want, " ", "")) {
			t.Errorf("%s %s: %d %s\nwant %d and %s", row.method, row.path, code, body, row.code, row.want)
		}
	}
	t.Run("redirect", func(t *testing.T) { redirect(t, w) })
	t.Run("watch", func(t *testing.T) { lines(t, w, n) })
}

// redirect is sent to the owner and gets the answer there.
func redirect(t *testing.T, w *world) {
	sent := 0
	for _, n := range w.nodes() {
		for _, k := range fruits {
			code, body, header := n.rest("GET", "/v1/stores/counts/keys/"+k+"?redirect=true", "")
			if code == http.StatusOK {
				continue
			}
			if sent++; code != http.StatusTemporaryRedirect || header.Get("Location") == "" {
				t.Fatalf("%s: %d %s", k, code, body)
			}
			resp, err := http.Get(header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s, where it was sent: %s", k, resp.Status)
			}
		}
	}
	if sent != len(fruits) {
		t.Errorf("%d questions were sent on, want one per key", sent)
	}
}

// lines reads a watch over HTTP, line by line.
func lines(t *testing.T, w *world, n *instance) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+n.endpoint+"/v1/stores/counts:watch?key=melon", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		var line struct {
			Complete bool `json:"complete"`
			Rows     []struct {
				Value int64 `json:"value"`
			} `json:"rows"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		if line.Complete {
			w.send("events", "melon", "x", noon)
		}
		if rows := line.Rows; len(rows) > 0 {
			if rows[0].Value != 1 {
				t.Errorf("%s", in.Text())
			}
			return
		}
	}
	t.Errorf("the watch ended: %v", in.Err())
}

// Typed readers in the process agree with the servers.
func TestInProcess(t *testing.T) {
	w, at := filled(t)
	found := 0
	for _, n := range w.nodes() {
		r := tidemark.Query(n.app, n.handles.counts)
		h := tidemark.Query(n.app, n.handles.prices)
		for i, k := range fruits {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			got, err := r.Get(ctx, k, tidemark.AtPosition(mustParse(t, about(at, "events"))))
			cancel()
			var e *query.Error
			switch {
			case err == nil:
				found++
				if !got.Found || got.Value != int64(i+1) {
					t.Errorf("%s: %+v", k, got)
				}
				rows, err := h.Rows(t.Context(), k, time.Time{}, time.Time{}, tidemark.AtPosition(mustParse(t, about(at, "prices"))))
				if err != nil || len(rows) != 3 || rows[2].Value.Cents != int64(100*i) {
					t.Errorf("history of %s: %+v, %v", k, rows, err)
				}
			case !asError(err, &e) || e.Reason != query.NotOwner || e.Host.Endpoint == n.endpoint:
				t.Errorf("%s: %v", k, err)
			}
		}
		local := 0
		for _, err := range r.Local(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			local++
		}
		if local == 0 {
			t.Errorf("instance %s has no rows", n.name)
		}
	}
	if found != len(fruits) {
		t.Errorf("%d keys were found, want %d", found, len(fruits))
	}
}

// Q-FAILOVER: the instance that has a task is gone. Until another one has taken over, a question about it ends with the reason
// and a hint when to ask again; then it has an answer, the last committed one.
func TestQFailover(t *testing.T) {
	w, at := filled(t)
	a, b := w.live["a"], w.live["b"]
	for i, k := range fruits { // everything is committed before the fault
		if _, err := b.dial().Get(t.Context(), &apiv1.GetRequest{Store: "counts", Key: &fruits[i], Position: about(at, "events")}); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	again := a.stand()
	a.mute()
	gone := 0
	for _, k := range fruits {
		code, body, header := b.rest("GET", "/v1/stores/counts/keys/"+k+"?timeout=100ms", "")
		switch {
		case code == http.StatusOK:
		case code == http.StatusServiceUnavailable && strings.Contains(body, "REBALANCING") && header.Get("Retry-After") != "":
			gone++
		default:
			t.Errorf("%s while its instance is gone: %d %s", k, code, body)
		}
	}
	if gone == 0 {
		t.Error("no key was on the instance that is gone")
	}
	for i, k := range fruits {
		w.await(k+" after the take-over", func() bool {
			code, body, _ := b.rest("GET", "/v1/stores/counts/keys/"+k+"?timeout=1s", "")
			if code == http.StatusOK && !strings.Contains(body, fmt.Sprintf(`"value":%d`, i+1)) {
				t.Fatalf("%s: %s", k, body)
			}
			return code == http.StatusOK
		})
	}
	again()
}

func mustParse(t *testing.T, text string) query.Position {
	t.Helper()
	p, err := query.ParsePosition(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func asError(err error, e **query.Error) bool {
	x, ok := err.(*query.Error)
	*e = x
	return ok
}

package queries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// asked counts answers and refusals of one way of asking.
type asked struct {
	mu      sync.Mutex
	answers map[string]int
	refused map[string]int
}

func (a *asked) count(m map[string]int, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m[name]++
}

// Every endpoint, over gRPC and REST, while records come in and instances stop, start and stand still: what is answered
// about rows that do not change is exactly those rows, and what is not answered has a reason that says to ask again.
func TestEndpointsUnderMoves(t *testing.T) {
	w, at := filled(t)
	a := &asked{answers: map[string]int{}, refused: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { // load
		for n := 0; ctx.Err() == nil; n++ {
			w.send("events", fmt.Sprintf("load-%d", n%50), "x", noon)
			w.send("prices", fmt.Sprintf("load-%d", n%50), `{"cents":1,"shop":"none"}`, noon)
			pause(ctx, 3*time.Millisecond)
		}
	})
	counts, prices := about(at, "events"), about(at, "prices")
	for id := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(id)))
			for ctx.Err() == nil {
				nodes := w.nodes()
				if len(nodes) == 0 {
					continue
				}
				n := nodes[rng.IntN(len(nodes))]
				i := rng.IntN(len(fruits))
				if id == 0 {
					a.rpc(t, n, i, counts, prices, rng.IntN(7))
				} else {
					a.rest(t, n, i, counts, prices, rng.IntN(7))
				}
			}
		})
	}
	w.disturb(ctx, rand.New(rand.NewPCG(5, 5)))
	// A machine that has other things to do may have got few answers until now.
	w.await("an answer of every endpoint", a.all)
	cancel()
	wg.Wait()
	t.Logf("answers %v, refused %v", a.answers, a.refused)
}

// all says whether every endpoint has answered in both ways.
func (a *asked) all() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range []string{"Get", "MultiGet", "Scan", "Windows", "Sessions", "History", "Values"} {
		if a.answers[name] == 0 || a.answers["REST "+name] == 0 {
			return false
		}
	}
	return true
}

// rpc asks one question over gRPC about the fruit with that index.
func (a *asked) rpc(t *testing.T, n *instance, i int, counts, prices string, which int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	q, k := n.dial(), fruits[i]
	var name, got, want string
	var err error
	rows := func(r *apiv1.RowsResponse) string {
		var out []string
		for _, row := range r.GetRows() {
			if !strings.HasPrefix(row.Key.GetJson(), `"load-`) {
				out = append(out, row.Value.GetJson())
			}
		}
		return strings.Join(out, " ")
	}
	switch which {
	case 0:
		var r *apiv1.GetResponse
		name, want = "Get", fmt.Sprint(i+1)
		r, err = q.Get(ctx, &apiv1.GetRequest{Store: "counts", Key: &k, Position: counts})
		got = r.GetRow().GetValue().GetJson()
	case 1:
		var r *apiv1.MultiGetResponse
		name, want = "MultiGet", "1 2 3 4 5 6 7 8"
		r, err = q.MultiGet(ctx, &apiv1.MultiGetRequest{Store: "counts", Keys: fruits, Position: counts})
		var all []string
		for _, f := range r.GetFound() {
			all = append(all, f.GetRow().GetValue().GetJson())
		}
		got = strings.Join(all, " ")
	case 2:
		var r *apiv1.RowsResponse
		name, want = "Scan", fmt.Sprint(i+1)
		r, err = q.Scan(ctx, &apiv1.RowsRequest{Store: "counts", Prefix: &k, Position: counts})
		got = rows(r)
	case 3:
		var r *apiv1.RowsResponse
		name, want = "Windows", "1 1 1"
		r, err = q.Windows(ctx, &apiv1.RowsRequest{Store: "minutes", Key: &k, Position: prices})
		got = rows(r)
	case 4:
		var r *apiv1.RowsResponse
		name, want = "Sessions", "1 1 1"
		r, err = q.Sessions(ctx, &apiv1.RowsRequest{Store: "sessions", Key: &k, Position: prices})
		if got = rows(r); got == "3" || got == "2 1" || got == "1 2" {
			got = want // a minute apart is at the gap: how they merge is not the matter here
		}
	case 5:
		var r *apiv1.RowsResponse
		name, want = "History", fmt.Sprintf(`{"cents":%d,"shop":"s2"} {"cents":%d,"shop":"s1"} {"cents":%d,"shop":"s0"}`, 100*i+2, 100*i+1, 100*i)
		r, err = q.History(ctx, &apiv1.RowsRequest{Store: "history", Key: &k, Position: prices})
		got = rows(r)
	default:
		var r *apiv1.RowsResponse
		name, want = "Values", `"s0" "s1" "s2"`
		r, err = q.Values(ctx, &apiv1.RowsRequest{Store: "shops", Key: &k, Position: prices})
		got = rows(r)
	}
	if err != nil {
		var e *query.Error
		if !errors.As(serve.Error(err), &e) || !mayBeRefused(e.Reason) {
			t.Errorf("%s %s of %s: %v", name, k, n.name, err)
			return
		}
		a.count(a.refused, name)
		return
	}
	if got != want {
		t.Errorf("%s %s of %s: %s, want %s", name, k, n.name, got, want)
	}
	a.count(a.answers, name)
}

func mayBeRefused(r query.Reason) bool {
	switch r {
	case query.NoOwner, query.NotOwner, query.Restoring, query.Moved, query.Partial, query.PositionNotReached, query.Deadline:
		return true
	}
	return false
}

// rest asks one question over HTTP about the fruit with that index.
func (a *asked) rest(t *testing.T, n *instance, i int, counts, prices string, which int) {
	k := fruits[i]
	q := []struct{ name, method, path, body, want string }{
		{"Get", "GET", "/v1/stores/counts/keys/" + k + "?timeout=2s&position=" + counts, "", fmt.Sprintf(`"value":%d,`, i+1)},
		{"MultiGet", "POST", "/v1/stores/counts:multiGet", fmt.Sprintf(`{"keys":["%s"],"timeout":"2s","position":"%s"}`, k, counts), fmt.Sprintf(`"value":%d,`, i+1)},
		{"Scan", "GET", "/v1/stores/counts/range?timeout=2s&prefix=" + k + "&position=" + counts, "", fmt.Sprintf(`"value":%d,`, i+1)},
		{"Windows", "GET", "/v1/stores/minutes/keys/" + k + "/windows?timeout=2s&from=2026-01-05T12:02:00Z&position=" + prices, "", `"value":1,"start":1767614520000`},
		{"Sessions", "GET", "/v1/stores/sessions/keys/" + k + "/sessions?timeout=2s&position=" + prices, "", `"key":"` + k + `"`},
		{"History", "GET", "/v1/stores/history/keys/" + k + "/history?timeout=2s&position=" + prices, "", fmt.Sprintf(`"cents":%d,"shop":"s1"`, 100*i+1)},
		{"Values", "GET", "/v1/stores/shops/keys/" + k + "/values?timeout=2s&position=" + prices, "", `"value":"s2"`},
	}[which]
	req, err := http.NewRequestWithContext(t.Context(), q.method, "http://"+n.endpoint+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Error(err)
		return
	}
	code, body, err := do(req)
	switch {
	case err != nil: // the instance stops
		a.count(a.refused, "REST "+q.name)
	case code == http.StatusServiceUnavailable || code == http.StatusMisdirectedRequest || code == http.StatusTooEarly || code == http.StatusGatewayTimeout:
		a.count(a.refused, "REST "+q.name)
	case code != http.StatusOK || !strings.Contains(body, q.want):
		t.Errorf("%s %s of %s: %d %s, want %s", q.name, k, n.name, code, body, q.want)
	default:
		a.count(a.answers, "REST "+q.name)
	}
}

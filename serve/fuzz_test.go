package serve

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// What is read back is what was written, and nothing else can be read.
func FuzzPageToken(f *testing.F) {
	for _, t := range []pageToken{
		{}, {question: 7, read: commits{0: 1, 3: 1 << 40}, partition: 3, begun: true, after: []byte("key")}, {partition: math.MaxInt32, begun: true},
	} {
		f.Add(t.String())
	}
	f.Add((&watchToken{}).String())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePageToken(text)
		if err != nil {
			wantReason(t, err, query.TokenMalformed)
			return
		}
		if p.String() != text {
			t.Errorf("%q is read as %+v, whose text is %q", text, p, p.String())
		}
	})
}

func FuzzWatchToken(f *testing.F) {
	f.Add((&watchToken{}).String())
	f.Add((&watchToken{1, commits{0: 1, 5: 2}}).String())
	f.Add((&pageToken{}).String())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseWatchToken(text)
		if err != nil {
			wantReason(t, err, query.TokenMalformed)
			return
		}
		if p.String() != text {
			t.Errorf("%q is read as %+v, whose text is %q", text, p, p.String())
		}
	})
}

// Bytes behind the sum of a token, which chance does not find.
func FuzzTokenBody(f *testing.F) {
	f.Add([]byte{1, 'p', 0, 0, 0, 0, 0, 0, 0, 7, 1, 3, 9, 3, 1, 2, 'k', 'k'})
	f.Add([]byte{1, 'w', 0, 0, 0, 0, 0, 0, 0, 7, 2, 0, 1, 3, 9})
	f.Add([]byte{1, 'p', 0, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		text := seal(bytes.Clone(body))
		if p, err := parsePageToken(text); err == nil && p.String() != text {
			t.Errorf("%x is read as %+v", body, p)
		}
		if w, err := parseWatchToken(text); err == nil && w.String() != text {
			t.Errorf("%x is read as %+v", body, w)
		}
	})
}

func FuzzPosition(f *testing.F) {
	for _, text := range []string{"", "orders/3@1041,totals/3#77", `a\,b/0#1`, "a/0@9223372036854775807", "a/0#1,a/0#2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := query.ParsePosition(text)
		if err != nil {
			wantReason(t, err, query.TokenMalformed)
			return
		}
		again, err := query.ParsePosition(p.String())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q: %v, again %v %v", text, p, again, err)
		}
	})
}

// Bodies of every request. What is read can be written and read again.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		`{"key":"a","consistency":"stale"}`, `{"keys":["a",1,{"b":2}]}`, `{"json_keys":[1,"x",null],"raw_keys":["YQ=="]}`, `{"json_key":{"deep":[1]},"limit":5}`,
		`{"from":5,"to":"2026-01-01T00:00:00Z"}`, `{"key":null}`, `[]`, `{"fields":["a.b"],"max_lag":"9007199254740993"}`, `{"jsonKey":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, m := range []proto.Message{&apiv1.GetRequest{}, &apiv1.MultiGetRequest{}, &apiv1.RowsRequest{}, &apiv1.WatchRequest{}} {
			if decodeJSON(body, m) != nil {
				continue
			}
			if _, err := proto.Marshal(m); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			again := m.ProtoReflect().New().Interface()
			text, err := marshaler{}.Marshal(m)
			if err == nil {
				err = decodeJSON(text, again)
			}
			if err != nil || !proto.Equal(again, m) {
				t.Errorf("%s is read as %v, written as %s: %v", body, m, text, err)
			}
		}
	})
}

// Paths and query parts: the answer is JSON with a reason or a row, never a panic.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"counts/keys/a", "counts/keys/a%2Fb?fields=x", "counts/range?prefix=k&limit=3", "windows/keys/a/windows?from=0&to=5", "numbers/keys/7",
		"counts/keys/a?raw_key=YQ", "counts/keys/%00%FF", "prices/keys/a/history?at=5", "%2F/keys/%2F", "counts/range?page_token=AXA", "counts/keys/a?partition=3",
		"counts/range?filter=value.n%3E1", "counts/keys/a?consistency=%C3%9F",
	} {
		f.Add(text)
	}
	in := &instance{c: &cluster{stores: fakeStores(), tasks: map[query.Task]*fakeTask{}}, believ: &query.Map{Self: 0}}
	for p := range int32(partitions) {
		task := query.Task{Sub: "main", Partition: p}
		in.c.tasks[task] = &fakeTask{task: task, rows: map[int][]fakeRow{}, changed: make(chan struct{})}
	}
	in.believ.Hosts = []query.Host{{Instance: "x"}}
	in.believ.Owners = map[string][]int{"main": {0, 0, 0, 0}}
	for _, p := range []int32{0, 1, 2, 3} {
		in.c.commit(p, kv("counts", "k", `{"n":1}`), window("windows", "a", 10))
	}
	s, err := New(in, Config{Limits: Limits{MaxTimeout: 20e6}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse("http://x/v1/stores/" + text)
		if err != nil || strings.Contains(u.Path, ":watch") || u.Host != "x" {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.RequestURI = u, u.RequestURI()
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) || w.Code == http.StatusInternalServerError {
			t.Errorf("%q: %d %s", text, w.Code, w.Body)
		}
	})
}

// Filters are refused or give an answer for a row.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		"value.n > 1", `key startsWith "a" && len(value.list) == 2`, "any(value.list, # > 1)", "1..3 == [1,2,3]", "value?.x?.y ?? 5 > 4", "repeat(\"x\", 100000) == \"\"",
		"let x = value; x.n == 1", "value.list | map(# * 2) | sum() > 3", `key matches "(a+)+$"`, "date(\"2026-01-01\").Year() > 5", "sortBy(value.list, -#)[0] == 1", "not true",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseFilter(text)
		if err != nil {
			wantReason(t, err, query.InvalidRequest)
			return
		}
		if _, err := p.keep(&query.Row{Time: 5}, []byte(`"abc"`), []byte(`{"n":1,"list":[1,2,9007199254740993],"f":1.5}`)); err != nil {
			wantReason(t, err, query.InvalidRequest)
		}
	})
}

// A projection of JSON is JSON, no longer than the value.
func FuzzFields(f *testing.F) {
	f.Add("a.b", []byte(`{"a":{"b":1,"c":2},"d":3}`))
	f.Add("a", []byte(`[{"a":1},{"b":2},5]`))
	f.Add("a.b.c", []byte(`{"a":{"b":[{"c":1}]},"a":5}`))
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		p, err := parseFields([]string{path}, false)
		if err != nil {
			wantReason(t, err, query.InvalidRequest)
			return
		}
		out, err := p.project(value)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Errorf("%s of %s: %s", path, value, out)
		}
	})
}

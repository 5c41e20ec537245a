package serve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// reasonOf returns the reason of the error of a call.
func reasonOf(err error) query.Reason {
	if err == nil {
		return ""
	}
	return reasoned(Error(err)).Reason
}

func wantReason(t testing.TB, err error, r query.Reason) {
	t.Helper()
	if got := reasonOf(err); got != r {
		t.Errorf("reason %q, want %q: %v", got, r, err)
	}
}

// ask asks over HTTP and returns the answer.
func (in *instance) ask(t testing.TB, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+in.endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// Every key is found from every instance, over gRPC and REST.
func TestGetAnywhere(t *testing.T) {
	c := newCluster(t, 2, Config{})
	for _, key := range []string{"a", "b", "c", "d", "e", "with/slash", "a b%2F", "", "ü:watch"} {
		p := c.put("counts", key, `{"n":9007199254740993,"key":"`+strings.ReplaceAll(key, `"`, "")+`"}`)
		for _, in := range c.instances {
			out, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String(key)})
			if err != nil {
				t.Fatalf("key %q: %v", key, err)
			}
			if !strings.Contains(out.Row.Value.GetJson(), "9007199254740993") || out.Meta.GetPartition() != p || out.Row.GetPartition() != p {
				t.Errorf("key %q: %v", key, out)
			}
			code, _, text := in.ask(t, "GET", "/v1/stores/counts/keys/"+escape(key), "")
			var answer struct {
				Row struct {
					Key   string
					Value struct {
						N   int64
						Key string
					}
				}
				Meta struct{ Task string }
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil || code != 200 {
				t.Fatalf("key %q: %d %s", key, code, text)
			}
			if answer.Row.Key != key || answer.Row.Value.N != 9007199254740993 || answer.Row.Value.Key != key {
				t.Errorf("key %q: %s", key, text)
			}
		}
	}
}

// escape escapes what is not a letter or a digit, a slash too.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		const hex = "0123456789ABCDEF"
		if c := key[i]; c >= 'a' && c <= 'z' {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
		}
	}
	return b.String()
}

func TestGetErrors(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.put("counts", "a", `1`)
	in := c.instances[0]
	for _, k := range []struct {
		path string
		code int
		want query.Reason
	}{
		{"/v1/stores/counts/keys/none", 404, query.KeyNotFound},
		{"/v1/stores/none/keys/a", 404, query.StoreNotFound},
		{"/v1/stores/numbers/keys/a", 400, query.KeyMalformed},
		{"/v1/stores/windows/keys/a", 400, query.WrongKind},
		{"/v1/stores/counts/keys/a?as_of=5", 400, query.WrongKind},
		{"/v1/stores/counts/keys/a?partition=4", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?partition=x", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?min_watermrk=5", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?min_watermark=yesterday", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?timeout=31s", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?position=x", 400, query.TokenMalformed},
		{"/v1/stores/counts/keys/a?consistency=maybe", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?fields=x&raw=true", 400, query.InvalidRequest},
		{"/v1/stores/counts/keys/a?min_watermark=2026-03-01T12:00:00Z&timeout=20ms", 425, query.WatermarkNotReached},
		{"/v1/stores/counts/keys/a?position=main/" + string('0'+byte(processor.PartitionOf([]byte("a"), partitions))) + "%232&timeout=20ms", 425, query.PositionNotReached},
	} {
		code, h, text := in.ask(t, "GET", k.path, "")
		var answer struct{ Reason, Message string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%s: %s", k.path, text)
		}
		if code != k.code || query.Reason(answer.Reason) != k.want || answer.Message == "" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", k.path, code, text)
		}
	}
	_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("none")})
	if m := MetaOf(Error(err)); m == nil || m.Seq == nil {
		t.Errorf("the error of a key that is not there says nothing about what was read: %v", err)
	}
}

// Key forms, raw values and fields.
func TestGetForms(t *testing.T) {
	c := newCluster(t, 1, Config{})
	c.put("counts", "a", `{"n":1,"in":{"x":[{"y":1,"z":2}],"w":3}}`)
	in := c.instances[0]
	for _, k := range []struct{ method, path, body, want string }{
		{"GET", "/v1/stores/counts/keys/a?fields=in.x.y&fields=nothing.at.all", "", `"value":{"in":{"x":[{"y":1}]}}`},
		{"POST", "/v1/stores/counts:get", `{"json_key":"a","fields":["n"]}`, `"value":{"n":1}`},
		{"POST", "/v1/stores/counts:get", `{"raw_key":"YQ==","raw":true}`, `"key":"YQ==","value":"ey`},
		{"POST", "/v1/stores/counts:get", `{"key":"a","consistency":"stale","timeout":"1s"}`, `"n":1`},
		{"GET", "/v1/stores/counts/keys/a?consistency=Stale", "", `"n":1`},
	} {
		code, _, text := in.ask(t, k.method, k.path, k.body)
		if code != 200 || !strings.Contains(text, k.want) {
			t.Errorf("%s %s: %d %s", k.path, k.body, code, text)
		}
	}
	for _, req := range []*apiv1.GetRequest{
		{Store: "counts"},
		{Store: "counts", Key: proto.String("a"), RawKey: []byte("a")},
	} {
		_, err := in.client.Get(context.Background(), req)
		wantReason(t, err, query.InvalidRequest)
	}
	c.put("numbers", string([]byte{0, 0, 0, 0, 0, 0, 0, 7}), string([]byte{0, 0, 0, 0, 0, 0, 1, 0}))
	code, _, text := in.ask(t, "GET", "/v1/stores/numbers/keys/7", "")
	if code != 200 || !strings.Contains(text, `"key":7,"value":256`) {
		t.Errorf("%d %s", code, text)
	}
	code, _, text = in.ask(t, "POST", "/v1/stores/numbers:multiGet", `{"keys":[7,8]}`)
	if code != 200 || !strings.Contains(text, `"key":7,"value":256`) {
		t.Errorf("%d %s", code, text)
	}
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// The codes are those that the comments of the reasons promise.
func TestCodes(t *testing.T) {
	found := 0
	for _, name := range []string{"../query/errors.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			text, ok := v.Values[0].(*ast.BasicLit)
			words := strings.Fields(v.Doc.Text())
			if !ok || len(words) < 2 || fmt.Sprint(v.Type) == "<nil>" {
				return true
			}
			found++
			reason, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := table[query.Reason(reason)]
			want := words[len(words)-2] + " " + words[len(words)-1]
			// UNAVAILABLE for Unavailable
			grpc := strings.ToUpper(strings.TrimPrefix(camel(c.grpc.String()), "_"))
			if got := fmt.Sprintf("%s, %d.", grpc, c.http); !ok || got != want {
				t.Errorf("%s: %s, its comment says %s", reason, got, want)
			}
			return true
		})
	}
	if found != len(table) {
		t.Errorf("%d reasons have comments, %d codes", found, len(table))
	}
}

func camel(s string) string {
	if s == "Canceled" {
		return "CANCELLED"
	}
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// What an error knows goes over the wire and comes back.
func TestErrorsGoThrough(t *testing.T) {
	for reason := range table {
		e := &query.Error{
			Reason: reason, Message: "m", Store: "s", Task: query.Task{Sub: "a/b", Partition: 3}, Missing: []int32{1, 4}, Err: errors.New("cause"),
		}
		if reason == query.NotOwner {
			e.Host = query.Host{Instance: "i", Endpoint: "h:1", Rack: "r"}
		}
		back := Error(statusOf(&withMeta{e, &apiv1.Meta{Task: "a/b/3"}}))
		got := reasoned(back)
		if got.Reason != reason || got.Store != "s" || got.Task != e.Task || got.Host != e.Host || len(got.Missing) != 2 || got.Message != "m: cause" {
			t.Errorf("%s: %+v", reason, got)
		}
		if MetaOf(back).GetTask() != "a/b/3" {
			t.Errorf("%s: %v", reason, MetaOf(back))
		}
		w := httptest.NewRecorder()
		restError(context.Background(), nil, nil, w, httptest.NewRequest("GET", "/v1/x?y=z", nil), statusOf(e))
		want := table[reason].http
		if reason == query.NotOwner {
			want = http.StatusTemporaryRedirect
		}
		if w.Code != want || !strings.Contains(w.Body.String(), `"reason":"`+string(reason)+`"`) || (w.Header().Get("Retry-After") != "") != (table[reason].retry > 0) {
			t.Errorf("%s: %d %v %s", reason, w.Code, w.Header(), w.Body)
		}
	}
	w := httptest.NewRecorder()
	restError(context.Background(), nil, nil, w, httptest.NewRequest("GET", "/", nil), statusOf(query.Errorf(query.NotOwner, "m")))
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("an owner without an address: %d", w.Code)
	}
	for err, want := range map[error]query.Reason{
		status.Error(codes.Unavailable, "connection refused"): query.NoOwner, status.Error(codes.DeadlineExceeded, ""): query.Deadline,
		status.Error(codes.Unimplemented, ""): query.Failed, errors.New("x"): query.Failed, context.Canceled: query.Cancelled,
	} {
		wantReason(t, err, want)
	}
}

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/serve"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// The commands ask a real app, with a real server.
func TestQueriesOfAnApp(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	top := topology.New("app")
	in := top.Stream[string, string]("in")
	in.Count("counts")
	in.Window(window.Tumbling(time.Minute)).Count("minutes")
	app, err := tidemark.New(top, tidemark.Config{Brokers: b.Addrs(), CommitInterval: 10 * time.Millisecond, Endpoint: host})
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(app, serve.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- app.Run(ctx) }()
	go func() { done <- server.Serve(ctx, l) }()
	defer func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	select {
	case <-app.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	position := ""
	for range 3 {
		r, err := cl.ProduceSync(ctx, &kgo.Record{Topic: "in", Key: []byte("a"), Value: []byte("x"), Timestamp: time.UnixMilli(noon)}).First()
		if err != nil {
			t.Fatal(err)
		}
		position = fmt.Sprintf("in/%d@%d", r.Partition, r.Offset)
	}
	for _, c := range []struct {
		command string
		want    []string
	}{
		{"stores", []string{"counts", "key-value", "minutes", "window", "in"}},
		{"get counts a -o json --position " + position, []string{`"key":"a","value":3`, `"position":"`}},
		{"get counts a b --position " + position, []string{"a ", "3", "(none)"}},
		{"scan counts --prefix a --position " + position, []string{"a ", "3"}},
		{"scan counts --filter value>3 --position " + position, []string{"VALUE"}},
		{"windows minutes a --at 2026-03-01T12:00:30Z --position " + position, []string{"2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z", "3"}},
		{"watch counts a --limit 1", []string{"reset", "row", "3"}},
	} {
		out, err := run(append(strings.Fields(c.command), "--endpoint", host)...)
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", c.command, want, out)
			}
		}
	}
	for command, want := range map[string]string{
		"get counts b":           "no row",
		"get minutes a":          "kind window",
		"scan counts --filter (": "the filter",
		"get counts a --timeout 100ms --position in/0@999999999": "--timeout",
	} {
		if _, err := run(append(strings.Fields(command), "--endpoint", host)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", command, err, want)
		}
	}
}

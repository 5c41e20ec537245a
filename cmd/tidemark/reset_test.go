package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/reset"
	"github.com/tidemark/tidemark/topology"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestReset(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 1, "out": 1, "counts-of-others": 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dir := t.TempDir()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.DefaultProduceTopic("in"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(context.Background(), kgo.KeyStringRecord("k", "v")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	start := func() *tidemark.App {
		top := topology.New("counts")
		top.Stream[string, string]("in").Count("per-key").To("out")
		app, err := tidemark.New(top, tidemark.Config{Brokers: b.Addrs(), StateDir: dir, CommitInterval: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- app.Run(context.Background()) }()
		for app.Processed() == 0 {
			select {
			case err := <-done:
				t.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
		return app
	}
	app := start()
	args := []string{"reset", "--app", "counts", "--brokers", strings.Join(b.Addrs(), ","), "--state", dir}
	if out, err := run(append(args, "--yes")...); !errors.Is(err, reset.ErrRunning) {
		t.Fatalf("reset of a running app: %v\n%s", err, out)
	}
	app.Close()

	out, err := run(args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in/0 at 1", "counts-per-key-changelog", "counts-per-key-progress", "counts-control", "local state", "dry run"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "counts-of-others") {
		t.Errorf("a topic of somebody else is listed:\n%s", out)
	}
	if out, err = run(append(args, "--yes")...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(dir + "/counts"); !os.IsNotExist(err) {
		t.Errorf("local state is still there: %v", err)
	}
	if _, err := run(args...); !errors.Is(err, reset.ErrNothing) {
		t.Errorf("second reset: %v", err)
	}
	// The app starts over: it processes its record again.
	app = start()
	app.Close()
}

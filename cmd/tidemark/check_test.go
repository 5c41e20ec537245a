package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/topology"
)

func TestCheck(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Topics: map[string]int{"in": 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	counting, summing := topology.New("counts"), topology.New("counts")
	counting.Stream[string, string]("in").Count("per-key")
	summing.Stream[string, string]("in").Sum("per-key", func(string) float64 { return 1 })
	app, err := tidemark.New(counting, tidemark.Config{Brokers: b.Addrs(), CommitInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	file := func(top *topology.Topology) string {
		t.Helper()
		plan, err := top.Build()
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "shape.json"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := plan.Shape().WriteJSON(f); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	check := func(path string, more ...string) (string, error) {
		return run(append([]string{"check", "--app", "counts", "--brokers", b.Addrs()[0], "--shape", path}, more...)...)
	}
	if out, err := check(file(summing)); err != nil || !strings.Contains(out, "nothing keeps") {
		t.Errorf("of an app that has never run: %q, %v", out, err)
	}
	done := make(chan error, 1)
	go func() { done <- app.Run(context.Background()) }()
	select {
	case <-app.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	if out, err := check(file(counting)); err != nil || !strings.Contains(out, "nothing keeps") {
		t.Errorf("what runs: %q, %v", out, err)
	}
	out, err := check(file(summing))
	if !errors.Is(err, errIncompatible) || !strings.Contains(out, "OPERATOR") || !strings.Contains(out, topology.RuleValue) || !strings.Contains(out, "float64") {
		t.Errorf("another type: %q, %v", out, err)
	}
	app.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	gone := topology.New("counts")
	gone.Stream[string, string]("in").Count("other")
	if _, err := check(file(gone)); !errors.Is(err, errIncompatible) {
		t.Errorf("gone: %v", err)
	}
	if _, err := check(file(gone), "--allow-non-restored", "per-key"); err != nil {
		t.Errorf("gone, and allowed to: %v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := check(bad); !errors.Is(err, topology.ErrShape) {
		t.Errorf("no shape: %v", err)
	}
	if _, err := check("nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

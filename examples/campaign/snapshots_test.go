package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
)

// Instances that have lost their disks are restored from the snapshots, and totals and minutes stay exact.
func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	o := options{
		dir: dir, rate: 1000, every: 500 * time.Millisecond, early: 300 * time.Millisecond, check: true, serve: "",
		snapshots: filepath.Join(dir, "snapshots"), snapshotEvery: 100 * time.Millisecond,
	}
	// life runs the example until done says so.
	life := func(done func() bool) string {
		out, err := os.Create(filepath.Join(dir, "out.txt"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, o, out) }()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for running := true; running; {
			select {
			case <-tick.C:
				if done() {
					stop()
				}
			case err = <-ended:
				running = false
			}
		}
		stop()
		out.Close()
		text, _ := os.ReadFile(out.Name())
		if err != nil || !strings.Contains(string(text), "checked: the totals are exactly") {
			t.Fatalf("%v\n%s", err, text)
		}
		return string(text)
	}
	first := life(func() bool {
		s, err := objects.OpenDir(o.snapshots)
		if err != nil {
			return false // not made yet
		}
		refs, err := snapshot.Find(t.Context(), s, appName+"/")
		if err != nil {
			t.Error(err)
		}
		return len(refs) >= 4 || err != nil
	})
	if strings.Contains(first, "restored from") {
		t.Errorf("the first life restores\n%s", first)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.RemoveAll(o.stateDir(name)); err != nil {
			t.Fatal(err)
		}
	}
	second := life(func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "out.txt"))
		return err != nil || strings.Contains(string(text), "restored from")
	})
	if !strings.Contains(second, "restored from a snapshot") || strings.Contains(second, "its local state") {
		t.Errorf("not restored from a snapshot\n%s", second)
	}
}

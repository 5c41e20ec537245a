package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The example runs, ends, and goes on with exact totals and minutes after a restart.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	var shown strings.Builder // in both lives together
	for range 2 {
		out, err := os.Create(filepath.Join(dir, "out.txt"))
		if err != nil {
			t.Fatal(err)
		}
		err = run(context.Background(), options{dir: dir, rate: 1000, runFor: time.Second, every: 500 * time.Millisecond, early: 300 * time.Millisecond, check: true, serve: "127.0.0.1:0"}, out)
		out.Close()
		text, _ := os.ReadFile(out.Name())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		shown.Write(text)
		for _, want := range []string{"spring-sale", "instance a", "instance b", "checked: the totals are exactly"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	for _, want := range []string{"EARLY    pane 0", "ON_TIME"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %q in\n%s", want, &shown)
		}
	}
}

package upgrade_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/childproc"
	"github.com/tidemark/tidemark/internal/verify/upgrade/program"
)

// service is a process of one of the programs.
type service struct {
	c    *cluster
	name string
	log  string
	proc *childproc.Process
}

// build compiles the programs of testdata and returns their directory.
func build(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, n := range names {
		args = append(args, "./testdata/"+n)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func (c *cluster) launch(bin, name string) *service {
	c.t.Helper()
	dir := c.t.TempDir()
	s := &service{c: c, name: name, log: filepath.Join(dir, "log")}
	var err error
	args := []string{"-brokers", strings.Join(c.broker.Addrs(), ","), "-state", filepath.Join(dir, "state")}
	if s.proc, err = childproc.Start(filepath.Join(bin, name), args, s.log, false); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.proc.Kill() })
	return s
}

// text is everything the process has written.
func (s *service) text() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		s.c.t.Fatal(err)
	}
	return string(b)
}

func (s *service) await(what string) {
	s.c.t.Helper()
	s.c.await(s.name+" says "+what, func() bool {
		if strings.Contains(s.text(), what) {
			return true
		}
		select {
		case <-s.proc.Done():
			s.c.t.Fatalf("%s has ended:\n%s", s.name, s.text())
		default:
		}
		return false
	})
}

// end waits for the process and returns its exit code.
func (s *service) end() int {
	s.c.t.Helper()
	select {
	case <-s.proc.Done():
	case <-time.After(time.Minute):
		s.c.t.Fatalf("%s does not end:\n%s", s.name, s.text())
	}
	return s.proc.State().ExitCode()
}

func (s *service) stop() {
	s.c.t.Helper()
	if err := s.proc.Stop(time.Minute); err != nil {
		s.c.t.Fatal(err)
	}
	if code := s.end(); code != 0 {
		s.c.t.Errorf("%s ended with %d:\n%s", s.name, code, s.text())
	}
}

// count sends n records and waits until their count has left.
func (c *cluster) count(n int) {
	c.t.Helper()
	for range n {
		c.client.Produce(context.Background(), &kgo.Record{Key: []byte("k"), Value: []byte("v")}, nil)
	}
	if err := c.client.Flush(context.Background()); err != nil {
		c.t.Fatal(err)
	}
	c.sent += n
	c.await("the count has left", func() bool { return c.last() == int64(c.sent) })
}

// Processes of three programs meet at one app, as deployments do. One that would lose state says so in a table, before it is
// started and when it ends; while the first one runs it waits without tasks and changes nothing. One that is free waits too, and
// takes over where the first has stopped.
func TestPrograms(t *testing.T) {
	c := newCluster(t)
	bin := build(t, "first", "changed", "grown")
	golden, err := os.ReadFile(filepath.Join("testdata", "changed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	first := c.launch(bin, "first")
	first.await("ready\n")
	c.count(100)
	before := c.content()

	for name, want := range map[string]int{"changed": program.Incompatible, "grown": 0, "first": 0} {
		cmd := exec.Command(filepath.Join(bin, name), "-check", "-brokers", strings.Join(c.broker.Addrs(), ","))
		out, err := cmd.Output()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != want || name == "changed" && !bytes.Equal(out, golden) {
			t.Errorf("%s -check ends with %d:\n%s", name, code, out)
		}
	}

	changed := c.launch(bin, "changed")
	changed.await("waiting without tasks")
	<-time.After(4 * time.Second) // longer than a session
	if d := cmp.Diff(before, c.content()); d != "" {
		t.Errorf("changed while a process waits (-before +now):\n%s", d)
	}
	if said := changed.text(); strings.Contains(said, "ready\n") || strings.Contains(said, "refused\n") {
		t.Errorf("it does not wait:\n%s", said)
	}
	c.count(100)
	first.stop()
	after := c.content()
	if code := changed.end(); code != program.Incompatible || !strings.HasSuffix(changed.text(), string(golden)) {
		t.Errorf("it ends with %d:\n%s", code, changed.text())
	}
	if d := cmp.Diff(after, c.content()); d != "" {
		t.Errorf("changed by the process that was refused (-before +now):\n%s", d)
	}

	first = c.launch(bin, "first")
	first.await("ready\n")
	grown := c.launch(bin, "grown")
	grown.await("waiting without tasks")
	c.count(100)
	if strings.Contains(grown.text(), "ready\n") {
		t.Error("both are ready")
	}
	first.stop()
	grown.await("ready\n")
	c.count(100)
	grown.stop()
}

package s3test_test

import (
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/s3test"
)

// recorder stands for a test and notes how it ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.end = "failed"
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, _ ...any) {
	r.end = "skipped"
	runtime.Goexit()
}

func TestWithoutServer(t *testing.T) {
	for set, want := range map[string]string{"": "failed", "0": "failed", "true": "failed", "1": "skipped"} {
		t.Setenv(s3test.NoS3Env, set)
		t.Setenv("TIDEMARK_CACHE", t.TempDir())
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s3test.New(r, s3test.Options{})
		}()
		<-done
		if r.end != want {
			t.Errorf("%q: %s, want %s", set, r.end, want)
		}
	}
}

func TestServer(t *testing.T) {
	s := s3test.New(t, s3test.Options{})
	client := &http.Client{Timeout: 300 * time.Millisecond}
	status := func() int {
		resp, err := client.Get(s.Endpoint() + "/bucket/none")
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	do := func(f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	do(func() error { return s.CreateBucket("bucket") })
	do(func() error { return s.CreateBucket("bucket") })
	if n := status(); n != http.StatusForbidden {
		t.Errorf("without credentials: %d", n)
	}
	do(s.Pause)
	if n := status(); n != 0 {
		t.Errorf("paused: %d", n)
	}
	do(s.Resume)
	client.Timeout = 10 * time.Second
	if n := status(); n != http.StatusForbidden {
		t.Errorf("resumed: %d", n)
	}
	do(s.Kill)
	if n := status(); n != 0 {
		t.Errorf("killed: %d", n)
	}
	before := s.Endpoint()
	do(func() error { return s.Restart(t.Context()) })
	if n := status(); n != http.StatusForbidden || s.Endpoint() != before {
		t.Errorf("restarted: %d at %s", n, s.Endpoint())
	}
	do(s.Pause)
	do(s.Stop) // paused as it is
	do(s.Stop)
	if n := status(); n != 0 {
		t.Errorf("stopped: %d", n)
	}
	if filepath.Base(s.DataDir()) != "data" || strings.Contains(s.Log(), "panic") {
		t.Errorf("%s\n%s", s.DataDir(), s.Log())
	}
}

func TestStartRefusals(t *testing.T) {
	if _, err := s3test.Start(t.Context(), s3test.Options{}); err == nil {
		t.Error("started without a directory")
	}
}

package s3

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/clock"
)

func TestOptions(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_REGION", "")
	for _, c := range []struct {
		name  string
		o     Options
		wrong string
	}{
		{"smallest", Options{Bucket: "b"}, ""},
		{"all", Options{
			Bucket: "b", Prefix: "p/q", Region: "eu-west-1", Endpoint: "https://host", PathStyle: true, AccessKey: "a", SecretKey: "s",
			SessionToken: "t", Encryption: "aws:kms", KMSKey: "k", Checksums: "required", MaxAttempts: 1, Timeout: time.Second, PartBytes: minPart,
		}, ""},
		{"AES", Options{Bucket: "b", Encryption: "AES256"}, ""},
		{"no bucket", Options{}, "no bucket"},
		{"prefix", Options{Bucket: "b", Prefix: "../x"}, "prefix"},
		{"prefix ends", Options{Bucket: "b", Prefix: "x/"}, "prefix"},
		{"half a key", Options{Bucket: "b", AccessKey: "a"}, "go together"},
		{"the other half", Options{Bucket: "b", SecretKey: "a"}, "go together"},
		{"encryption", Options{Bucket: "b", Encryption: "rot13"}, "rot13"},
		{"key without KMS", Options{Bucket: "b", Encryption: "AES256", KMSKey: "k"}, "aws:kms"},
		{"checksums", Options{Bucket: "b", Checksums: "sometimes"}, "sometimes"},
		{"parts", Options{Bucket: "b", PartBytes: minPart - 1}, "parts of"},
		{"attempts", Options{Bucket: "b", MaxAttempts: -1}, "-1 attempts"},
		{"time-out", Options{Bucket: "b", Timeout: -1}, "time-out"},
	} {
		s, err := New(t.Context(), c.o)
		if (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || !strings.HasPrefix(err.Error(), "s3: options: ")) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		want := c.o.Region
		if want == "" {
			want = "us-east-1"
		}
		if got := s.client.Options().Region; got != want {
			t.Errorf("%s: region %q", c.name, got)
		}
	}
}

// Keys of others beside ours, and around ours, are not shown.
func TestForeignKeys(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{Prefix: "p"})
	check(t, s.Put(t.Context(), "a", objects.Bytes(nil)))
	for _, name := range []string{"a", "p/b c", "p//d", "pq/a", "p/", "p/~x"} {
		f.objects[name] = fakeObject{}
	}
	if got := list(t, s, ""); len(got) != 1 || got[0] != "a" {
		t.Errorf("listed %q", got)
	}
}

// A server that says nothing costs the time-out, not forever.
func TestSilentServer(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer server.Close()
	defer close(stop)
	s, _ := storeAt(t, server.URL, Options{MaxAttempts: 2, Timeout: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	if _, err := s.Get(ctx, "k", 0, -1); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end was not the time-out's: %v", err)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("took %v", took)
	}
}

// A long upload, in which the server is silent, is no silence of the connection; and neither is a long answer.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		dial := watched(clock.Real(), 30*time.Second, func(context.Context, string, string) (net.Conn, error) { return here, nil })
		c, err := dial(t.Context(), "", "")
		check(t, err)
		answered := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(c, make([]byte, 5)) // waits while the request is sent
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			answered <- err
		}()
		start := time.Now()
		go func() { _, _ = io.CopyN(io.Discard, there, 10) }()
		for range 10 {
			time.Sleep(20 * time.Second)
			_, err := c.Write([]byte{1})
			check(t, err)
		}
		for range 5 {
			time.Sleep(20 * time.Second)
			_, err := there.Write([]byte{1})
			check(t, err)
		}
		if err := <-answered; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if took := time.Since(start); took != (10*20+5*20+30)*time.Second {
			t.Errorf("ended after %v", took)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) { // nobody takes it
			t.Errorf("write: %v", err)
		}
		check(t, c.Close())
		check(t, there.Close())
	})
}

// What credentials say never gets into an error.
func TestErrorsKeepSecrets(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{AccessKey: "visible-key", SecretKey: "hidden-secret", MaxAttempts: 1})
	f.plan = always("put", denied)
	err := s.Put(t.Context(), "k", objects.Bytes(nil))
	if err == nil || strings.Contains(err.Error(), "hidden-secret") || errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
}

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// only returns a plan that does the troubles to the first requests of an operation, in order.
func only(op string, troubles ...trouble) func(int, string) trouble {
	return func(_ int, o string) trouble {
		if o != op || len(troubles) == 0 {
			return trouble{}
		}
		next := troubles[0]
		troubles = troubles[1:]
		return next
	}
}

func always(op string, tr trouble) func(int, string) trouble {
	return func(_ int, o string) trouble {
		if o == op {
			return tr
		}
		return trouble{}
	}
}

func (f *fake) count(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, op+" ") {
			n++
		}
	}
	return n
}

var (
	slowDown = trouble{status: 503, code: "SlowDown"}
	internal = trouble{status: 500, code: "InternalError"}
	reset    = trouble{lost: true}
	lostDone = trouble{lost: true, done: true}
	denied   = trouble{status: 403, code: "AccessDenied"}
)

// Troubles of every operation pass when they are few.
func TestFaultsPass(t *testing.T) {
	ctx := t.Context()
	content := pattern(5000)
	for name, tr := range map[string]trouble{
		"slow down": slowDown, "internal": internal, "reset": reset, "answer lost": lostDone,
		"throttled": {status: 429, code: "TooManyRequests"}, "time-out": {status: 400, code: "RequestTimeout"},
		"bad gateway": {status: 502}, "conflict": {status: 409, code: "ConditionalRequestConflict"},
		"damaged on the way": {status: 400, code: "BadDigest"},
	} {
		for _, op := range []string{"put", "get", "head", "list", "delete", "create", "part", "complete"} {
			if tr.code != "" && tr.status < 429 && op == "head" {
				continue // an answer to HEAD has no code
			}
			t.Run(name+" "+op, func(t *testing.T) {
				f := newFake(t)
				s, h := storeAt(t, f.URL, Options{})
				parts := op == "create" || op == "part" || op == "complete"
				if parts {
					s.single, s.opts.PartBytes = 1000, 2000
				}
				f.plan = only(op, tr, tr, tr)
				check(t, s.Put(ctx, "k", objects.Bytes(content)))
				b, err := read(ctx, s, "k", 0, -1)
				if err != nil || !bytes.Equal(b, content) {
					t.Fatalf("%d bytes, %v", len(b), err)
				}
				_, err = read(ctx, s, "k", 0, 0)
				check(t, err)
				if got := list(t, s, ""); !slices.Equal(got, []string{"k"}) {
					t.Errorf("listed %q", got)
				}
				check(t, s.Delete(ctx, "k"))
				if got := list(t, s, ""); len(got) != 0 {
					t.Errorf("left %q", got)
				}
				if len(h.pauses) == 0 || len(h.pauses) > 3 {
					t.Errorf("%d pauses", len(h.pauses))
				}
				if len(f.uploads) > 0 && name != "answer lost" {
					t.Errorf("%d uploads left", len(f.uploads))
				}
			})
		}
	}
}

// Many of them are an error, after as many attempts as were allowed; what a retry cannot mend is one at once.
func TestFaultsStay(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		trouble
		attempts int
	}{
		"slow down": {slowDown, 4}, "reset": {reset, 4}, "denied": {denied, 1},
		"no bucket": {trouble{status: 404, code: "NoSuchBucket"}, 1}, "redirect": {trouble{status: 301, code: "PermanentRedirect"}, 1},
	} {
		for op, call := range map[string]func(s *Store) error{
			"put":    func(s *Store) error { return s.Put(ctx, "k", objects.Bytes([]byte("v"))) },
			"get":    func(s *Store) error { _, err := read(ctx, s, "k", 0, -1); return err },
			"list":   func(s *Store) error { return s.List(ctx, "", func(objects.Info) error { return nil }) },
			"delete": func(s *Store) error { return s.Delete(ctx, "k") },
		} {
			f := newFake(t)
			s, _ := storeAt(t, f.URL, Options{MaxAttempts: 4})
			f.plan = always(op, c.trouble)
			err := call(s)
			if err == nil || !strings.HasPrefix(err.Error(), "s3: ") || errors.Is(err, objects.ErrNotFound) {
				t.Errorf("%s, %s: %v", name, op, err)
			}
			if n := f.count(op); n != c.attempts {
				t.Errorf("%s, %s: %d attempts, want %d", name, op, n, c.attempts)
			}
		}
	}
}

// The pauses grow, are spread over all of their range, and end with the context.
func TestPauses(t *testing.T) {
	f := newFake(t)
	f.plan = always("put", slowDown)
	var smallest, largest [12]time.Duration
	for i := range smallest {
		smallest[i] = maxPause
	}
	for range 20 {
		s, h := storeAt(t, f.URL, Options{MaxAttempts: 13})
		if err := s.Put(t.Context(), "k", objects.Bytes(nil)); err == nil {
			t.Fatal("succeeded")
		}
		for i, d := range h.pauses {
			if most := min(firstPause<<i, maxPause); d < 0 || d >= most {
				t.Fatalf("pause %d is %v, at most %v", i, d, most)
			}
			largest[i], smallest[i] = max(largest[i], d), min(smallest[i], d)
		}
	}
	for i, d := range largest {
		if half := min(firstPause<<i, maxPause) / 2; d < half || smallest[i] > half {
			t.Errorf("20 pauses number %d are from %v to %v", i, smallest[i], d)
		}
	}
	s, _ := storeAt(t, f.URL, Options{})
	s.clk = realPauses{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, "k", objects.Bytes(nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A Put whose answer was lost finds its own object on the second attempt and is content. One that finds another's
// replaces it: it may be damaged.
func TestPutAnswerLost(t *testing.T) {
	content := pattern(3000)
	for _, op := range []string{"put", "complete"} {
		for _, tr := range []trouble{lostDone, {status: 500, code: "InternalError"}} {
			f := newFake(t)
			s, _ := storeAt(t, f.URL, Options{})
			if op == "complete" {
				s.single, s.opts.PartBytes = 1000, 2000
			}
			f.plan = only(op, tr)
			check(t, s.Put(t.Context(), "k", objects.Bytes(content)))
			if n := f.count(op); n != 2 {
				t.Errorf("%s: %d attempts", op, n)
			}
			if heads := f.count("head"); (heads == 1) != tr.lost {
				t.Errorf("%s: %d looks at what is there", op, heads)
			}
			if got := f.objects["k"].data; !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes", op, len(got))
			}
		}
	}
	for name, there := range map[string]fakeObject{
		"other size":     {pattern(2999), time.Now()},
		"an old one":     {slices.Repeat([]byte{1}, 3000), time.Now().Add(-time.Hour)},
		"of a first try": {slices.Repeat([]byte{1}, 3000), time.Now()},
	} {
		f := newFake(t)
		s, _ := storeAt(t, f.URL, Options{})
		f.objects["k"] = there
		if name != "of a first try" {
			f.plan = only("put", reset)
		}
		check(t, s.Put(t.Context(), "k", objects.Bytes(content)))
		if got := f.objects["k"]; !bytes.Equal(got.data, content) || time.Since(got.modified) > time.Minute {
			t.Errorf("%s: it is still there", name)
		}
	}
}

// A server without conditions.
func TestPutWithoutConditions(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{})
	f.plan = only("put", trouble{status: 501, code: "NotImplemented"})
	check(t, s.Put(t.Context(), "k", objects.Bytes([]byte("v"))))
	if f.headers[0].Get("If-None-Match") != "*" || f.headers[1].Get("If-None-Match") != "" {
		t.Error("the condition was sent again")
	}
}

// Parts of an object that cannot be put are given up, also when the context has ended.
func TestPartsAborted(t *testing.T) {
	for _, op := range []string{"part", "complete"} {
		f := newFake(t)
		s, _ := storeAt(t, f.URL, Options{})
		s.single, s.opts.PartBytes = 1000, 2000
		f.plan = always(op, denied)
		if err := s.Put(t.Context(), "k", objects.Bytes(pattern(5000))); status(err) != 403 {
			t.Errorf("%s: %v", op, err)
		}
		if f.aborted != 1 || len(f.uploads) != 0 || len(f.objects) != 0 {
			t.Errorf("%s: %d aborted, %d uploads, %d objects", op, f.aborted, len(f.uploads), len(f.objects))
		}
	}
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{})
	s.single, s.opts.PartBytes = 1000, 2000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.plan = func(_ int, op string) trouble {
		if op == "part" {
			cancel()
		}
		return trouble{}
	}
	if err := s.Put(ctx, "k", objects.Bytes(pattern(5000))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if f.aborted != 1 || len(f.objects) != 0 {
		t.Errorf("%d aborted, %d objects", f.aborted, len(f.objects))
	}
}

// Parts and whole objects go with their CRC32C.
func TestChecksumsSent(t *testing.T) {
	for _, required := range []bool{false, true} {
		f := newFake(t)
		o := Options{Encryption: "aws:kms", KMSKey: "alias/k"}
		if required {
			o.Checksums = "required"
		}
		s, _ := storeAt(t, f.URL, o)
		s.single, s.opts.PartBytes = 1000, 2000
		check(t, s.Put(t.Context(), "small", objects.Bytes(pattern(10))))
		check(t, s.Put(t.Context(), "large", objects.Bytes(pattern(5000))))
		for i, r := range f.requests {
			sum, op := f.headers[i].Get("X-Amz-Checksum-Crc32c"), strings.Fields(r)[0]
			if want := !required && (op == "put" || op == "part"); (sum != "") != want {
				t.Errorf("%s has the sum %q", r, sum)
			}
			if want := op == "put" || op == "create"; (f.headers[i].Get("X-Amz-Server-Side-Encryption") == "aws:kms") != want ||
				(f.headers[i].Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") == "alias/k") != want {
				t.Errorf("%s: encryption %v", r, f.headers[i])
			}
		}
	}
}

// A body that breaks off goes on where it was, and a byte more is progress.
func TestGetResumed(t *testing.T) {
	content := pattern(100_000)
	for name, c := range map[string]struct{ offset, length int64 }{"all": {0, -1}, "a range": {1000, 50_000}, "the end": {40_000, -1}} {
		f := newFake(t)
		s, _ := storeAt(t, f.URL, Options{MaxAttempts: 3})
		f.objects["k"] = fakeObject{content, time.Now()}
		f.plan = func(n int, _ string) trouble {
			if n > 8 {
				return trouble{}
			}
			return trouble{cut: 5000}
		}
		want := content[c.offset:]
		if c.length > 0 {
			want = want[:c.length]
		}
		b, err := read(t.Context(), s, "k", c.offset, c.length)
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(b), err, len(want))
		}
		if n := f.count("get"); n != 9 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// A body that breaks off again and again at the same byte is an error that says so.
func TestGetStuck(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{MaxAttempts: 3})
	f.objects["k"] = fakeObject{pattern(1000), time.Now()}
	f.plan = func(n int, op string) trouble {
		if n == 1 {
			return trouble{cut: 400}
		}
		return reset
	}
	b, err := read(t.Context(), s, "k", 0, -1)
	if len(b) != 400 || err == nil || !strings.Contains(err.Error(), "s3: read k at 400") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	f.mu.Lock()
	f.plan = always("get", trouble{cut: 1})
	f.mu.Unlock()
	if b, err = read(t.Context(), s, "k", 0, 10); err != nil || len(b) != 10 {
		t.Errorf("a byte an answer: %d bytes, %v", len(b), err)
	}
}

// An object that is replaced while it is read is not read on.
func TestGetReplaced(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{})
	f.objects["k"] = fakeObject{pattern(1000), time.Now()}
	f.plan = func(n int, op string) trouble {
		if n == 1 {
			return trouble{cut: 400}
		}
		f.objects["k"] = fakeObject{pattern(1001), time.Now()}
		return trouble{}
	}
	if _, err := read(t.Context(), s, "k", 0, -1); status(err) != 412 {
		t.Error(err)
	}
}

// The reading of a body ends with the context.
func TestGetCancelled(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{})
	f.objects["k"] = fakeObject{pattern(1 << 20), time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Get(ctx, "k", 0, -1)
	check(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 10))
	check(t, err)
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// More keys than one request takes; some of an answer failing.
func TestDeleteMany(t *testing.T) {
	f := newFake(t)
	s, _ := storeAt(t, f.URL, Options{})
	var keys []string
	for i := range 2500 {
		keys = append(keys, fmt.Sprintf("k/%04d", i))
		f.objects[keys[i]] = fakeObject{}
	}
	check(t, s.Delete(t.Context(), keys...))
	if n := f.count("delete"); n != 3 || len(f.objects) != 0 {
		t.Errorf("%d requests, %d left", n, len(f.objects))
	}
}

func TestDeletePartly(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes map[string][]string
		fails bool
		left  int
	}{
		{"some pass", map[string][]string{"a": {"InternalError", "SlowDown"}, "b": {"SlowDown"}}, false, 0},
		{"is gone", map[string][]string{"b": {"NoSuchKey"}}, false, 1},
		{"one is denied", map[string][]string{"a": {"SlowDown"}, "b": {"AccessDenied"}}, true, 2},
		{"for too long", map[string][]string{"b": {"SlowDown", "SlowDown", "SlowDown"}}, true, 1},
	} {
		f := newFake(t)
		f.refuse = c.codes
		s, _ := storeAt(t, f.URL, Options{MaxAttempts: 3})
		for _, key := range []string{"a", "b", "c"} {
			f.objects[key] = fakeObject{}
		}
		err := s.Delete(t.Context(), "a", "b", "c")
		if (err != nil) != c.fails || len(f.objects) != c.left {
			t.Errorf("%s: %d left, %v", c.name, len(f.objects), err)
		}
	}
}

// Package objectstest is the conformance suite of objects.Store: every implementation runs it in its tests.
//
// It must be imported by tests only. Its random test prints its seed as the name of a subtest.
package objectstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/clock"
)

// Run runs the suite. make returns an empty store of the subtest's own.
func Run(t *testing.T, make func(t *testing.T) objects.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, objects.Store)
	}{
		{"Sizes", testSizes},
		{"BodyFromItsStart", testBodyFromItsStart},
		{"Replace", testReplace},
		{"Modified", testModified},
		{"Ranges", testRanges},
		{"NotFound", testNotFound},
		{"BrokenBody", testBrokenBody},
		{"List", testList},
		{"ListStops", testListStops},
		{"ListAndDelete", testListAndDelete},
		{"Delete", testDelete},
		{"BadKeys", testBadKeys},
		{"Cancelled", testCancelled},
		{"Together", testTogether},
		{"Random", testRandom},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, make(t)) })
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, s objects.Store, key string, b []byte) {
	t.Helper()
	check(t, s.Put(t.Context(), key, objects.Bytes(b)))
}

// get returns a range of an object. It reads as small buffers and large ones do.
func get(ctx context.Context, s objects.Store, key string, offset, length int64) ([]byte, error) {
	r, err := s.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func want(t *testing.T, s objects.Store, key string, content []byte) {
	t.Helper()
	b, err := get(t.Context(), s, key, 0, -1)
	check(t, err)
	if !bytes.Equal(b, content) {
		t.Fatalf("%s: %d bytes %.40q, want %d bytes %.40q", key, len(b), b, len(content), content)
	}
}

func list(t *testing.T, s objects.Store, prefix string) []string {
	t.Helper()
	var keys []string
	check(t, s.List(t.Context(), prefix, func(i objects.Info) error {
		keys = append(keys, i.Key)
		return nil
	}))
	return keys
}

// pattern returns n bytes of which no two nearby ranges are equal.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func testSizes(t *testing.T, s objects.Store) {
	for _, n := range []int{0, 1, 4096, 300_000} {
		key := fmt.Sprintf("app/sub/0/sst/%d", n)
		put(t, s, key, pattern(n))
		want(t, s, key, pattern(n))
	}
}

func testBodyFromItsStart(t *testing.T, s objects.Store) {
	all := pattern(10_000)
	body := io.NewSectionReader(bytes.NewReader(all), 1000, 5000)
	_, err := body.Seek(700, io.SeekStart)
	check(t, err)
	check(t, s.Put(t.Context(), "part", body))
	want(t, s, "part", all[1000:6000])
	check(t, s.Put(t.Context(), "again", body))
	want(t, s, "again", all[1000:6000])
}

// A damaged object is mended by putting it again, and a reader never sees a mixture.
func testReplace(t *testing.T, s objects.Store) {
	put(t, s, "a/b", []byte("first and longer"))
	put(t, s, "a/b", []byte("second"))
	want(t, s, "a/b", []byte("second"))
	put(t, s, "a/b", []byte("second"))
	want(t, s, "a/b", []byte("second"))
	put(t, s, "a/b", []byte("fourth"))
	want(t, s, "a/b", []byte("fourth"))
	if got := list(t, s, ""); len(got) != 1 || got[0] != "a/b" {
		t.Errorf("listed %q", got)
	}
}

// What is put again counts as modified again. Stores keep whole seconds at worst; the clocks of a test agree.
func testModified(t *testing.T, s objects.Store) {
	modified := func() (at time.Time) {
		check(t, s.List(t.Context(), "k", func(i objects.Info) error {
			at = i.Modified
			return nil
		}))
		return at
	}
	put(t, s, "k", []byte("v"))
	first := modified()
	if age := clock.Real().Now().Sub(first); age > time.Minute || age < -time.Minute {
		t.Errorf("modified %v ago", age)
	}
	put(t, s, "k", []byte("v"))
	if again := modified(); again.Before(first) {
		t.Errorf("modified at %v, before %v", again, first)
	}
}

func testRanges(t *testing.T, s objects.Store) {
	const size = 1000
	all := pattern(size)
	put(t, s, "k", all)
	for _, c := range []struct{ offset, length int64 }{
		{0, -1}, {0, size}, {0, size + 1}, {0, 1}, {0, 0},
		{10, -1}, {10, 20}, {10, 0}, {size - 1, 1}, {size - 1, 100}, {size - 1, -1},
		{size, -1}, {size, 1}, {size, 0}, {size + 7, -1}, {size + 7, 3},
	} {
		b, err := get(t.Context(), s, "k", c.offset, c.length)
		lo := min(c.offset, size)
		hi := int64(size)
		if c.length >= 0 {
			hi = min(lo+c.length, size)
		}
		if err != nil || !bytes.Equal(b, all[lo:hi]) {
			t.Errorf("%d bytes from %d: %d bytes, %v; want %d", c.length, c.offset, len(b), err, hi-lo)
		}
	}
	put(t, s, "empty", nil)
	for _, c := range []struct{ offset, length int64 }{{0, -1}, {0, 5}, {3, -1}} {
		if b, err := get(t.Context(), s, "empty", c.offset, c.length); err != nil || len(b) != 0 {
			t.Errorf("%d bytes from %d of nothing: %q, %v", c.length, c.offset, b, err)
		}
	}
	// Closed before its end.
	r, err := s.Get(t.Context(), "k", 0, -1)
	check(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	check(t, err)
	check(t, r.Close())
	if _, err := s.Get(t.Context(), "k", -1, 5); !errors.Is(err, objects.ErrKey) {
		t.Errorf("from offset -1: %v", err)
	}
}

func testNotFound(t *testing.T, s objects.Store) {
	put(t, s, "a/b", []byte("v"))
	for _, key := range []string{"none", "a", "a/c", "a/b/c", "a/b.c"} {
		for _, length := range []int64{-1, 0, 3} {
			if _, err := get(t.Context(), s, key, 0, length); !errors.Is(err, objects.ErrNotFound) {
				t.Errorf("%d bytes of %s: %v", length, key, err)
			}
		}
		if _, err := get(t.Context(), s, key, 5, -1); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("%s from 5: %v", key, err)
		}
	}
}

// brokenReader fails in the middle.
type brokenReader struct{ err error }

func (r brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > 500 {
		return 0, r.err
	}
	return len(p), nil
}

// A source that fails, or holds less than it says, leaves what was there before.
func testBrokenBody(t *testing.T, s objects.Store) {
	broken := errors.New("broken disk")
	for name, body := range map[string]*io.SectionReader{
		"fails": io.NewSectionReader(brokenReader{broken}, 0, 100_000),
		"short": io.NewSectionReader(bytes.NewReader(pattern(100)), 0, 100_000),
	} {
		put(t, s, "old-"+name, []byte("old"))
		for _, key := range []string{"new-" + name, "old-" + name} {
			err := s.Put(t.Context(), key, body)
			if err == nil || name == "fails" && !errors.Is(err, broken) {
				t.Errorf("%s: put %s: %v", name, key, err)
			}
		}
		want(t, s, "old-"+name, []byte("old"))
		if got := list(t, s, "new"); len(got) != 0 {
			t.Errorf("%s: listed %q", name, got)
		}
	}
}

func testBadKeys(t *testing.T, s objects.Store) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", `a\b`, `..\a`,
		"a b", "a\x00b", "a\nb", "ä", "a:b", "~tmp", "~tmp/put-1", "a?b", "a%2fb",
		string(bytes.Repeat([]byte("a"), 256)), string(bytes.Repeat([]byte("a/"), 600)) + "a",
	} {
		if err := s.Put(t.Context(), key, objects.Bytes([]byte("v"))); !errors.Is(err, objects.ErrKey) {
			t.Errorf("put %.30q: %v", key, err)
		}
		if _, err := get(t.Context(), s, key, 0, -1); !errors.Is(err, objects.ErrKey) {
			t.Errorf("get %.30q: %v", key, err)
		}
		if err := s.Delete(t.Context(), "fine", key); !errors.Is(err, objects.ErrKey) {
			t.Errorf("delete %.30q: %v", key, err)
		}
	}
	for _, prefix := range []string{"/", "/a", "a//", "../", "a/../", "~", " "} {
		err := s.List(t.Context(), prefix, func(objects.Info) error { return errors.New("listed") })
		if !errors.Is(err, objects.ErrKey) {
			t.Errorf("list %q: %v", prefix, err)
		}
	}
	for _, key := range []string{"a", "A-_.9", "...", "..a", "a/.b/c.", "x/-y", string(bytes.Repeat([]byte("k"), 255))} {
		put(t, s, key, []byte(key))
		want(t, s, key, []byte(key))
		check(t, s.Delete(t.Context(), key))
	}
}

func testCancelled(t *testing.T, s objects.Store) {
	put(t, s, "k", pattern(1000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "new", objects.Bytes([]byte("v"))); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := get(ctx, s, "k", 0, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
	if err := s.List(ctx, "", func(objects.Info) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
	if err := s.Delete(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	if got := list(t, s, ""); len(got) != 1 || got[0] != "k" {
		t.Errorf("listed %q", got)
	}
}

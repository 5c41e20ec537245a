package objectstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Keys whose order is not that of a walk through directories: a slash sorts behind a dot and a hyphen and before letters.
var listed = []string{
	"app-g2/sub/0/sst/aa",
	"app.x",
	"app/sub-b/0/manifest/1",
	"app/sub.c/0/manifest/1",
	"app/sub/0/manifest/1",
	"app/sub/0/manifest/2",
	"app/sub/0/sst/aa",
	"app/sub/10/sst/aa",
	"app/sub/2/sst/aa",
	"app/suba/0/sst/aa",
	"app0",
}

func testList(t *testing.T, s objects.Store) {
	if got := list(t, s, ""); len(got) != 0 {
		t.Fatalf("an empty store lists %q", got)
	}
	for i, key := range slices.Backward(listed) {
		put(t, s, key, pattern(i))
	}
	if !slices.IsSorted(listed) {
		t.Fatal("the test's own keys are not sorted")
	}
	for _, prefix := range []string{
		"", "a", "app", "app/", "app-", "app.", "app/s", "app/sub", "app/sub/", "app/sub/0", "app/sub/0/", "app/sub/0/man",
		"app/sub/0/manifest/", "app/sub/0/manifest/2", "app/sub/0/manifest/21", "app0", "app0/", "b", "none/", "app/sub/0/sst/aa/",
	} {
		var want []string
		for _, key := range listed {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		if got := list(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("prefix %q: %q, want %q", prefix, got, want)
		}
	}
	at := 0
	check(t, s.List(t.Context(), "", func(i objects.Info) error {
		if i.Key != listed[at] || i.Size != int64(at) || i.Modified.IsZero() {
			t.Errorf("entry %d: %+v", at, i)
		}
		at++
		return nil
	}))
}

func testListStops(t *testing.T, s objects.Store) {
	for _, key := range listed {
		put(t, s, key, nil)
	}
	stop := errors.New("enough")
	n := 0
	err := s.List(t.Context(), "", func(objects.Info) error {
		n++
		if n == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 3 {
		t.Errorf("stopped after %d with %v", n, err)
	}
}

// What is shown may be deleted at once.
func testListAndDelete(t *testing.T, s objects.Store) {
	for i := range 40 {
		put(t, s, fmt.Sprintf("d/%03d", i), nil)
	}
	n := 0
	check(t, s.List(t.Context(), "d/", func(i objects.Info) error {
		n++
		return s.Delete(t.Context(), i.Key)
	}))
	if got := list(t, s, ""); n != 40 || len(got) != 0 {
		t.Errorf("%d shown, left %q", n, got)
	}
}

func testDelete(t *testing.T, s objects.Store) {
	check(t, s.Delete(t.Context()))
	check(t, s.Delete(t.Context(), "none"))
	for _, key := range []string{"a/b", "a/c", "a/d", "e"} {
		put(t, s, key, []byte(key))
	}
	check(t, s.Delete(t.Context(), "a/c", "none", "e", "a", "a/b/x", "a/c"))
	if got, want := list(t, s, ""), []string{"a/b", "a/d"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	check(t, s.Delete(t.Context(), "a/b", "a/d"))
	put(t, s, "a/b", []byte("new"))
	want(t, s, "a/b", []byte("new"))
}

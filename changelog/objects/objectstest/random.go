package objectstest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Many write one object at the same time: it is always one of them whole.
func testTogether(t *testing.T, s objects.Store) {
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = bytes.Repeat([]byte{byte('a' + i)}, 20_000+i)
	}
	put(t, s, "d/k", contents[0])
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for i := range contents {
		wg.Go(func() {
			for range 5 {
				if err := s.Put(t.Context(), "d/k", objects.Bytes(contents[i])); err != nil {
					errs <- err
				}
			}
		})
		wg.Go(func() {
			for range 5 {
				b, err := get(t.Context(), s, "d/k", 0, -1)
				if err != nil {
					errs <- err
					continue
				}
				if !slices.ContainsFunc(contents, func(c []byte) bool { return bytes.Equal(b, c) }) {
					errs <- fmt.Errorf("%d bytes that nobody has put", len(b))
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"d/k"}) {
		t.Errorf("listed %q", got)
	}
}

// Random operations against a map.
func testRandom(t *testing.T, s objects.Store) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		twin := make(map[string][]byte)
		var keys []string
		for _, top := range []string{"a", "a-b", "a.b", "ab"} {
			for i := range 4 {
				keys = append(keys, fmt.Sprintf("%s/%d", top, i))
			}
		}
		for range 120 {
			key := keys[rng.IntN(len(keys))]
			switch rng.IntN(6) {
			case 0, 1:
				b := pattern(rng.IntN(3000))
				put(t, s, key, b)
				twin[key] = b
			case 2:
				other := keys[rng.IntN(len(keys))]
				check(t, s.Delete(t.Context(), key, other))
				delete(twin, key)
				delete(twin, other)
			case 3:
				prefix := key[:rng.IntN(len(key)+1)]
				var want []string
				for _, k := range slices.Sorted(maps.Keys(twin)) {
					if strings.HasPrefix(k, prefix) {
						want = append(want, k)
					}
				}
				if got := list(t, s, prefix); !slices.Equal(got, want) {
					t.Fatalf("list %q: %q, want %q", prefix, got, want)
				}
			default:
				compareRange(t, s, rng, key, twin)
			}
		}
	})
}

func compareRange(t *testing.T, s objects.Store, rng *rand.Rand, key string, twin map[string][]byte) {
	t.Helper()
	offset, length := rng.Int64N(3500), rng.Int64N(3500)-500
	b, err := get(t.Context(), s, key, offset, length)
	content, ok := twin[key]
	if !ok {
		if !errors.Is(err, objects.ErrNotFound) {
			t.Fatalf("get %s: %v", key, err)
		}
		return
	}
	check(t, err)
	lo := min(int(offset), len(content))
	hi := len(content)
	if length >= 0 {
		hi = min(lo+int(length), hi)
	}
	if !bytes.Equal(b, content[lo:hi]) {
		t.Fatalf("%s, %d bytes from %d: %d bytes, want %d", key, length, offset, len(b), hi-lo)
	}
}

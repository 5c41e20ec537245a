package snapshot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// The twin looks at one object at a time and searches the manifests for its key.
func garbageTwin(have []objects.Info, retained []*Manifest, refs []Ref, now time.Time, grace time.Duration) map[string]bool {
	keyOf := func(m *Manifest) string {
		b, _ := m.Append(nil)
		return m.Task().manifest(m.Seq, b)
	}
	for _, r := range refs {
		if !slices.ContainsFunc(retained, func(m *Manifest) bool { return keyOf(m) == r.Key }) {
			return nil
		}
	}
	out := make(map[string]bool)
	for _, o := range have {
		needed := o.Modified.Add(grace).Compare(now) >= 0
		for _, m := range retained {
			needed = needed || o.Key == keyOf(m)
			for _, f := range m.Files {
				needed = needed || strings.HasPrefix(o.Key, m.Task().Prefix()) && strings.HasSuffix(o.Key, fmt.Sprintf("/sst/%x", f.Sum)) && f.Data == nil
			}
		}
		if !needed {
			out[o.Key] = true
		}
	}
	return out
}

func TestGarbageTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	now, deleted := time.UnixMilli(1e12), 0
	for range 500 {
		var manifests []*Manifest
		for seq := range uint64(1 + rng.IntN(4)) {
			m := head(seq)
			m.Partition = int32(rng.IntN(2))
			for n := range 4 {
				if rng.IntN(2) == 0 {
					m.Files = append(m.Files, File{Name: fmt.Sprint(n), Size: 1, Sum: [32]byte{byte(rng.IntN(6))}})
				}
			}
			manifests = append(manifests, &m)
		}
		var have []objects.Info
		seen := func(key string) {
			have = append(have, objects.Info{Key: key, Modified: now.Add(-time.Duration(rng.IntN(4)) * Grace / 2)})
		}
		var retained []*Manifest
		var refs []Ref
		for _, m := range manifests {
			key := m.Task().manifest(m.Seq, encode(t, m))
			if rng.IntN(10) > 0 {
				seen(key)
			}
			listed := rng.IntN(2) == 0
			if listed {
				refs = append(refs, Ref{Key: key, Seq: m.Seq})
			}
			if listed && rng.IntN(12) > 0 {
				retained = append(retained, m)
			}
		}
		for partition := range int32(2) {
			for n := range byte(6) {
				if rng.IntN(3) > 0 {
					seen(Task{testTask.App, testTask.Sub, partition}.object([32]byte{n}))
				}
			}
		}
		got := Garbage(have, retained, refs, now, Grace)
		want := garbageTwin(have, retained, refs, now, Grace)
		for _, key := range got {
			if !want[key] {
				t.Fatalf("%s is deleted and needed", key)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d are garbage, want %d", len(got), len(want))
		}
		if i := slices.IndexFunc(got, func(k string) bool { return strings.Contains(k, "/sst/") }); i >= 0 {
			if j := slices.IndexFunc(got[i:], func(k string) bool { return strings.Contains(k, "/manifest/") }); j >= 0 {
				t.Fatalf("a manifest goes after its files: %q", got)
			}
		}
		deleted += len(got)
	}
	if deleted < 500 {
		t.Errorf("only %d deleted", deleted)
	}
}

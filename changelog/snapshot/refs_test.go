package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRefsGolden(t *testing.T) {
	key := "a/b/0/manifest/000000000000012c-" + strings.Repeat("ab", 32)
	refs := []Ref{{Key: key, Seq: 300, Created: 1000, Bytes: 5, Kept: Hydrating}}
	b, err := AppendRefs(nil, refs)
	check(t, err)
	want := "01" + "01" + "60" + hex.EncodeToString([]byte(key)) + "ac02" + "d00f" + "05" + "01"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding changed:\n got %s\nwant %s", got, want)
	}
	back, err := DecodeRefs(b)
	check(t, err)
	if d := cmp.Diff(refs, back); d != "" {
		t.Error(d)
	}
	for n := 1; n < len(b); n++ {
		if _, err := DecodeRefs(b[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes of it: %v", n, err)
		}
	}
	if _, err := DecodeRefs(append(slices.Clone(b), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
	_, err = DecodeRefs(append([]byte{2}, b[1:]...))
	if ve, ok := errors.AsType[*VersionError](err); !ok || ve.Have != 2 {
		t.Errorf("a newer version: %v", err)
	}
	for _, b := range [][]byte{nil, {}, {1, 0}} {
		if refs, err := DecodeRefs(b); refs != nil || err != nil {
			t.Errorf("%x: %v, %v", b, refs, err)
		}
	}
}

func TestRefsRefusals(t *testing.T) {
	good := ref(5, Rolling)
	for name, change := range map[string]func(*Ref){
		"no key":      func(r *Ref) { r.Key = "" },
		"other seq":   func(r *Ref) { r.Seq++ },
		"a file":      func(r *Ref) { r.Key = testTask.object([32]byte{}) },
		"path":        func(r *Ref) { r.Key = "../" + r.Key },
		"upper case":  func(r *Ref) { r.Key = strings.ToUpper(r.Key) },
		"cut":         func(r *Ref) { r.Key = r.Key[:len(r.Key)-1] },
		"bytes":       func(r *Ref) { r.Bytes = -1 },
		"kept":        func(r *Ref) { r.Kept = 3 },
		"zero padded": func(r *Ref) { r.Key = strings.Replace(r.Key, "/3/", "/03/", 1) },
	} {
		r := good
		change(&r)
		if b, err := AppendRefs([]byte("x"), []Ref{good, r}); err == nil || string(b) != "x" {
			t.Errorf("%s: encoded as %q, %v", name, b, err)
		}
	}
}

func FuzzDecodeRefs(f *testing.F) {
	good, err := AppendRefs(nil, []Ref{ref(1, Rolling), ref(2, Savepoint)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		refs, err := DecodeRefs(b)
		if err != nil || len(b) == 0 {
			return
		}
		again, err := AppendRefs(nil, refs)
		if err != nil || string(again) != string(b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x, %v", b, refs, again, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(ref(300, Rolling).Key)
	f.Add(testTask.object([32]byte{1}))
	f.Add("a/b/-1/sst/x")
	f.Fuzz(func(t *testing.T, key string) {
		k, ok := parseKey(key)
		if !ok {
			return
		}
		back := k.task.object(k.sum)
		if k.manifest {
			back = fmt.Sprintf("%smanifest/%016x-%x", k.task.Prefix(), k.seq, k.sum)
		}
		if back != key {
			t.Fatalf("%q is read as %+v, which is %q", key, k, back)
		}
	})
}

func TestRetain(t *testing.T) {
	list := func(refs []Ref) string {
		var out []string
		for _, r := range refs {
			out = append(out, fmt.Sprintf("%d%s", r.Seq, []string{"", "h", "s"}[r.Kept]))
		}
		return strings.Join(out, " ")
	}
	rolling := func(seqs ...uint64) []Ref {
		var out []Ref
		for _, s := range seqs {
			out = append(out, ref(s, Rolling))
		}
		return out
	}
	mixed := []Ref{ref(1, Savepoint), ref(2, Rolling), ref(3, Hydrating), ref(4, Rolling), ref(5, Rolling)}
	for _, c := range []struct {
		refs          []Ref
		newest        Ref
		keep          int
		kept, dropped string
	}{
		{nil, ref(1, Rolling), 3, "1", ""},
		{rolling(1, 2), ref(3, Rolling), 3, "1 2 3", ""},
		{rolling(1, 2, 3), ref(4, Rolling), 3, "2 3 4", "1"},
		{rolling(1, 2, 3, 4, 5), ref(6, Rolling), 2, "5 6", "1 2 3 4"},
		{rolling(1, 2), ref(3, Rolling), 1, "3", "1 2"},
		{rolling(1, 2), ref(3, Rolling), 0, "3", "1 2"},
		{rolling(1, 2), ref(3, Rolling), -5, "3", "1 2"},
		{mixed, ref(6, Rolling), 3, "1s 3h 4 5 6", "2"},
		{mixed, ref(6, Savepoint), 3, "1s 2 3h 4 5 6s", ""},
		{mixed, ref(6, Savepoint), 2, "1s 3h 4 5 6s", "2"},
		{rolling(1, 2, 3), ref(3, Rolling), 3, "1 2 3", ""},     // the same one again
		{rolling(1, 2, 3), ref(2, Hydrating), 1, "2h 3", "1"},   // begins to hydrate
		{[]Ref{ref(2, Hydrating)}, ref(2, Rolling), 3, "2", ""}, // is hydrated
		{rolling(7, 3, 5), ref(9, Rolling), 3, "5 7 9", "3"},    // in any order
		{[]Ref{ref(9, Rolling)}, ref(4, Rolling), 1, "9", "4"},  // never an older one for a newer
	} {
		before := slices.Clone(c.refs)
		kept, dropped := Retain(c.refs, c.newest, c.keep)
		if list(kept) != c.kept || list(dropped) != c.dropped {
			t.Errorf("%s + %s, keep %d: kept %q, dropped %q; want %q and %q", list(c.refs), list([]Ref{c.newest}), c.keep, list(kept), list(dropped), c.kept, c.dropped)
		}
		if !slices.Equal(before, c.refs) {
			t.Errorf("the list itself changed: %v", c.refs)
		}
	}
}

// Whatever happens: nothing is lost or invented, what is pinned stays, and exactly the newest rolling ones stay.
func TestRetainRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		var refs []Ref
		for seq := range uint64(rng.IntN(8)) {
			refs = append(refs, ref(seq, byte(rng.IntN(3))))
		}
		rng.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		newest, keep := ref(uint64(rng.IntN(10)), byte(rng.IntN(3))), 1+rng.IntN(4)
		kept, dropped := Retain(refs, newest, keep)

		all := append(slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return r.Key == newest.Key }), newest)
		if len(kept)+len(dropped) != len(all) {
			t.Fatalf("%d of %d left", len(kept)+len(dropped), len(all))
		}
		for _, r := range all {
			younger := 0
			for _, o := range all {
				if o.Kept == Rolling && o.Seq > r.Seq {
					younger++
				}
			}
			stays := r.Kept != Rolling || younger < keep
			if slices.Contains(kept, r) != stays || slices.Contains(dropped, r) == stays {
				t.Fatalf("keep %d of %+v: %+v kept %v", keep, all, r, !stays)
			}
		}
		if !slices.IsSortedFunc(kept, func(a, b Ref) int { return int(a.Seq) - int(b.Seq) }) {
			t.Fatalf("not sorted: %+v", kept)
		}
	}
}

package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The row keys of a DB never change: each encoder against bytes written by hand.
func TestRowKeysGolden(t *testing.T) {
	hash := &[16]byte{0xaa, 15: 0xbb}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"time 0", AppendTimeKey(nil, 0), "8000000000000000"},
		{"time -1", AppendTimeKey(nil, -1), "7fffffffffffffff"},
		{"time min", AppendTimeKey(nil, math.MinInt64), "0000000000000000"},
		{"time max", AppendTimeKey(nil, math.MaxInt64), "ffffffffffffffff"},
		{"window", AppendWindowKey(nil, 258, []byte("k")), "8000000000000102 6b"},
		{"term", AppendTermKey(nil, []byte("a\x00b")), "61 00ff 62 0001"},
		{"term empty", AppendTermKey(nil, nil), "0001"},
		{"session", AppendSessionKey(nil, []byte("k"), Span{Start: 1, End: 2}), "6b 0001 8000000000000002 8000000000000001"},
		{"version", AppendVersionKey(nil, []byte("k"), 1), "6b 0001 7ffffffffffffffe"},
		{"timer", AppendTimerKey(nil, []byte("k"), []byte("tag")), "6b 0001 746167"},
		{"dedup", AppendDedupKey(nil, 0x01020304, hash), "01020304 aa0000000000000000000000000000bb"},
		{"list", AppendListKey(nil, []byte("k"), 5), "6b 0001 0000000000000005"},
	} {
		if got := hex.EncodeToString(c.got); got != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Bytes compare as what they stand for, and come back.
func TestRowKeysOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	key := func() []byte {
		b := make([]byte, rng.IntN(4))
		for i := range b {
			b[i] = []byte{0, 1, 2, 0xfe, 0xff}[rng.IntN(5)]
		}
		return b
	}
	when := func() int64 {
		return []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64, rng.Int64() - 1<<62}[rng.IntN(7)]
	}
	for range 20_000 {
		k1, k2, a1, a2, b1, b2 := key(), key(), when(), when(), when(), when()
		for _, c := range []struct {
			name string
			got  int
			want int
		}{
			{"window", bytes.Compare(AppendWindowKey(nil, a1, k1), AppendWindowKey(nil, a2, k2)), cmp.Or(cmp.Compare(a1, a2), bytes.Compare(k1, k2))},
			{"session", bytes.Compare(AppendSessionKey(nil, k1, Span{a1, b1}), AppendSessionKey(nil, k2, Span{a2, b2})), cmp.Or(bytes.Compare(k1, k2), cmp.Compare(b1, b2), cmp.Compare(a1, a2))},
			{"version", bytes.Compare(AppendVersionKey(nil, k1, a1), AppendVersionKey(nil, k2, a2)), cmp.Or(bytes.Compare(k1, k2), cmp.Compare(a2, a1))},
			{"timer", bytes.Compare(AppendTimerKey(nil, k1, k2), AppendTimerKey(nil, k2, k1)), cmp.Or(bytes.Compare(k1, k2), bytes.Compare(k2, k1))},
		} {
			if c.got != c.want {
				t.Fatalf("%s: %q %d %d and %q %d %d compare as %d, want %d", c.name, k1, a1, b1, k2, a2, b2, c.got, c.want)
			}
		}
		if k, s, ok := ParseSessionKey(AppendSessionKey(nil, k1, Span{a1, b1})); !ok || !bytes.Equal(k, k1) || s != (Span{a1, b1}) {
			t.Fatalf("session %q %d %d comes back as %q %v %v", k1, a1, b1, k, s, ok)
		}
		if k, from, ok := ParseVersionKey(AppendVersionKey(nil, k1, a1)); !ok || !bytes.Equal(k, k1) || from != a1 {
			t.Fatalf("version %q %d comes back as %q %d %v", k1, a1, k, from, ok)
		}
		if end, k, ok := ParseWindowKey(AppendWindowKey(nil, a1, k1)); !ok || end != a1 || !bytes.Equal(k, k1) {
			t.Fatalf("window %d %q comes back as %d %q %v", a1, k1, end, k, ok)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(AppendSessionKey(nil, []byte("a\x00"), Span{1, 2}))
	f.Add([]byte{0, 1})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, rest, ok := ParseTermKey(b); ok && !bytes.Equal(append(AppendTermKey(nil, k), rest...), b) {
			t.Errorf("%q is %q and %q", b, k, rest)
		}
		ParseSessionKey(b)
		ParseVersionKey(b)
	})
}

package watermark

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// edges are the numbers at which arithmetic goes wrong, and some others.
var edges = []int64{math.MinInt64, math.MinInt64 + 1, -1 << 62, -1000, -1, 0, 1, 1000, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}

func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}

// WM-OVERFLOW
func TestSaturate(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	pairs := make([][2]int64, 0, 1000)
	for _, a := range edges {
		for _, b := range edges {
			pairs = append(pairs, [2]int64{a, b})
		}
	}
	for range 500 {
		pairs = append(pairs, [2]int64{int64(rng.Uint64()), int64(rng.Uint64())})
	}
	for _, p := range pairs {
		a, b := big.NewInt(p[0]), big.NewInt(p[1])
		if got, want := add(p[0], p[1]), clamp(new(big.Int).Add(a, b)); got != want {
			t.Errorf("seed %d: %d + %d = %d, want %d", seed, p[0], p[1], got, want)
		}
		if got, want := sub(p[0], p[1]), clamp(new(big.Int).Sub(a, b)); got != want {
			t.Errorf("seed %d: %d - %d = %d, want %d", seed, p[0], p[1], got, want)
		}
	}
}

func TestMillis(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want int64
	}{
		{time.UnixMilli(-1), -1},
		{time.UnixMilli(1234), 1234},
		{time.Time{}, -62135596800000},
		{time.Unix(1<<62, 0), math.MaxInt64},
		{time.Unix(-1<<62, 0), math.MinInt64},
		{time.Unix(math.MaxInt64/1000-1, 999_000_000), (math.MaxInt64/1000-1)*1000 + 999},
	} {
		if got := millis(c.t); got != c.want {
			t.Errorf("%v: %d, want %d", c.t, got, c.want)
		}
	}
}

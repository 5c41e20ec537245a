package snapshot

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	const s = time.Second
	local := func(d time.Duration) Candidate { return Candidate{Kind: Local, Cost: d} }
	remote := func(name string, d time.Duration) Candidate { return Candidate{Kind: Remote, Name: name, Cost: d} }
	log := func(d time.Duration) Candidate { return Candidate{Kind: Changelog, Cost: d} }
	bad := func(c Candidate, why string) Candidate { c.Rejected = why; return c }
	for _, c := range []struct {
		name   string
		of     []Candidate
		winner int
		losers []string
	}{
		{"nothing", nil, -1, nil},
		{"one", []Candidate{log(s)}, 0, nil},
		{"the cheapest", []Candidate{local(3 * s), remote("7", 2*s), log(9 * s)}, 1, []string{"local: takes 3s, snapshot 7 takes 2s", "changelog: takes 9s, snapshot 7 takes 2s"}},
		{"a tie", []Candidate{log(s), remote("7", s), local(s)}, 2, []string{"changelog: takes 1s, local takes 1s", "snapshot 7: takes 1s, local takes 1s"}},
		{"a tie of two snapshots", []Candidate{remote("8", s), remote("7", s)}, 0, []string{"snapshot 7: takes 1s, snapshot 8 takes 1s"}},
		{"the cheapest is rejected", []Candidate{bad(local(0), "damaged"), remote("7", 2*s), log(9 * s)}, 1, []string{"local: damaged", "changelog: takes 9s, snapshot 7 takes 2s"}},
		{"all are rejected", []Candidate{bad(local(0), "damaged"), bad(log(0), "truncated")}, -1, []string{"local: damaged", "changelog: truncated"}},
	} {
		winner, losers := Choose(c.of)
		if winner != c.winner || !slices.Equal(losers, c.losers) {
			t.Errorf("%s: %d, %q; want %d, %q", c.name, winner, losers, c.winner, c.losers)
		}
	}
	if got := Kind(9).String(); got != "kind 9" {
		t.Error(got)
	}
}

// The twin sorts.
func TestChooseRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 1000 {
		var all []Candidate
		for range rng.IntN(6) {
			c := Candidate{Kind: Kind(rng.IntN(3)), Cost: time.Duration(rng.IntN(3))}
			if rng.IntN(3) == 0 {
				c.Rejected = "no"
			}
			all = append(all, c)
		}
		order := make([]int, 0, len(all))
		for i, c := range all {
			if c.Rejected == "" {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if d := all[a].Cost - all[b].Cost; d != 0 {
				return int(d)
			}
			return int(all[a].Kind) - int(all[b].Kind)
		})
		want := -1
		if len(order) > 0 {
			want = order[0]
		}
		winner, losers := Choose(all)
		if winner != want || len(losers) != len(all)-min(len(order), 1) {
			t.Fatalf("%+v: %d, want %d; %q", all, winner, want, losers)
		}
	}
}

func TestEstimate(t *testing.T) {
	r := Rates{BytesPerSecond: 100, RecordsPerSecond: 10}
	for _, c := range []struct {
		bytes, records int64
		rates          Rates
		want           time.Duration
	}{
		{0, 0, r, 0},
		{200, 0, r, 2 * time.Second},
		{0, 30, r, 3 * time.Second},
		{200, 30, r, 5 * time.Second},
		{-1, -1, r, 0},
		{200e6, 1e6, Rates{}, 4 * time.Second},
		{math.MaxInt64, math.MaxInt64, Rates{1e-9, 1e-9}, 1 << 62},
	} {
		if got := Estimate(c.bytes, c.records, c.rates); got != c.want {
			t.Errorf("%d bytes, %d records: %v, want %v", c.bytes, c.records, got, c.want)
		}
	}
}

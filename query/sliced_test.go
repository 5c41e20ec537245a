package query_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// countsIn returns the description of the store of a count over windows.
func countsIn(t *testing.T, w window.Window) *query.Store {
	t.Helper()
	top := topology.New("app")
	top.Stream[string, string]("in").Timestamps(nil, watermark.OutOfOrderness(0)).Window(w).Count("counts").To("out")
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plan.Subs[0].Queries {
		if s.ID == "counts" {
			return s
		}
	}
	t.Fatal("no store")
	return nil
}

// What is kept as slices is read as the windows that are not over yet, whatever the pages.
func TestSlicedTwin(t *testing.T) {
	kinds := []window.Window{
		window.Hopping(10*time.Millisecond, 2*time.Millisecond),
		window.Hopping(10*time.Millisecond, 4*time.Millisecond),
		window.Hopping(7*time.Millisecond, 3*time.Millisecond),
		window.Cumulate(3*time.Millisecond, 12*time.Millisecond),
	}
	keys := []string{"", "a", "aa", "a\x00", "b"}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		w := kinds[seed%uint64(len(kinds))]
		s := countsIn(t, w)
		if s.Sliced == nil {
			t.Fatalf("%s is not kept as slices", w)
		}
		wm := int64(rng.IntN(60)) - 20
		done := s.Sliced.Done(wm)
		type cell struct {
			end int64
			key string
		}
		kept, want := map[cell]int64{}, map[cell]int64{}
		span := int64(1 + rng.IntN(120))
		for range rng.IntN(60) {
			at, key := rng.Int64N(span)-20, keys[rng.IntN(len(keys))]
			slice := w.Slice(at)
			if slice.End > done || rng.IntN(2) == 0 { // some that are over are still there
				kept[cell{slice.End, key}]++
			}
			for _, b := range w.Assign(nil, at) {
				if b.Start >= done {
					want[cell{b.End, key}]++
				}
			}
		}
		var rows shelf
		for c, n := range kept {
			rows.put(store.AppendWindowKey(nil, c.end, []byte(c.key)), string(binary.BigEndian.AppendUint64(nil, uint64(n))))
		}
		rows = rows.sorted()
		p := query.Page{HasTime: rng.IntN(2) == 0, From: math.MinInt64, To: math.MaxInt64}
		if p.HasTime {
			p.From = rng.Int64N(span) - 30
			p.To = p.From + rng.Int64N(50)
		}
		switch rng.IntN(3) {
		case 0:
			p.Key = []byte(keys[rng.IntN(len(keys))])
		case 1:
			p.Range = query.Prefix([]byte(keys[rng.IntN(len(keys))]))
		}
		var cells []cell
		for c := range want {
			start := w.Of(c.end).Start
			if (p.Key == nil && p.Range.Contains([]byte(c.key)) || p.Key != nil && c.key == string(p.Key)) && start >= p.From && start <= p.To {
				cells = append(cells, c)
			}
		}
		slices.SortFunc(cells, func(a, b cell) int {
			if a.end != b.end {
				return int(a.end - b.end)
			}
			return slices.Compare([]byte(a.key), []byte(b.key))
		})
		var expect, got []string
		for _, c := range cells {
			expect = append(expect, fmt.Sprintf("%q[%d,%d)=%d", c.key, w.Of(c.end).Start, c.end, want[c]))
		}
		for range 10_000 {
			p.Rows, p.Bytes = 1+rng.IntN(5), 1<<20
			found, next, err := query.NewView(query.Meta{Watermark: wm}, rows, nil, nil).Read(t.Context(), s, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range found {
				got = append(got, fmt.Sprintf("%q[%d,%d)=%d", r.Key, r.Start, r.End, binary.BigEndian.Uint64(r.Value)))
			}
			if p.After = next; next == nil {
				break
			}
		}
		if !slices.Equal(got, expect) {
			t.Fatalf("seed %d, %s at %d, %+v:\n got %q\nwant %q", seed, w, wm, p, got, expect)
		}
	}
}

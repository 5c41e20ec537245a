package changelog

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrimsGolden(t *testing.T) {
	trims := []Trim{
		{Store: "counts", Floor: []byte{0x80, 1}, Segments: []Segment{{Start: 5, Group: 60_000}, {Start: 300, Group: 120_000}}},
		{Store: "new"},
	}
	const want = "01" + "02" + "06636f756e7473" + "028001" + "02" + "05c0a907" + "a702c0a907" + "036e6577" + "00" + "00"
	b := AppendTrims(nil, trims)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoded as %s", got)
	}
	back, err := ParseTrims(b)
	if err != nil || !cmp.Equal(back, trims) {
		t.Errorf("parsed as %v, %v", back, err)
	}
	for n := 1; n < len(b); n++ {
		if _, err := ParseTrims(b[:n]); err == nil {
			t.Errorf("%d bytes of it parse", n)
		}
	}
	if _, err := ParseTrims(append(b, 0)); err == nil {
		t.Error("a byte too many parses")
	}
	if none, err := ParseTrims(nil); none != nil || err != nil {
		t.Errorf("no section is %v, %v", none, err)
	}
}

// The segments stay few, no row that has not expired lies below what is needed, and without limits on the memory the
// offset would be no higher than that of a list of all rows.
func TestTrimTwin(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		type row struct{ offset, group int64 }
		var rows []row
		var trim Trim
		end, floor, needed := int64(0), int64(math.MinInt64), int64(0)
		groups, width := int64(1+r.IntN(300)), int64(1+r.IntN(100))
		for commit := range int64(400) {
			start, high := end, int64(math.MinInt64)
			for range r.IntN(4) {
				g := max((commit+r.Int64N(groups))*width, floor)
				rows = append(rows, row{end, g})
				high = max(high, g)
				end++
			}
			end++ // a marker
			if high > math.MinInt64 {
				trim = trim.Add(start, high)
			}
			if r.IntN(3) == 0 {
				floor = max(floor, commit*width)
				trim = trim.Expire(floor, []byte{1})
			}
			if len(trim.Segments) > maxSegments {
				t.Fatalf("seed %d: %d segments", seed, len(trim.Segments))
			}
			n := trim.Needed()
			if n < needed {
				t.Fatalf("seed %d: what is needed went from %d back to %d", seed, needed, n)
			}
			needed = n
			for _, w := range rows {
				if w.group >= floor && w.offset < n {
					t.Fatalf("seed %d: row of group %d at %d is not expired (floor %d), needed from %d on", seed, w.group, w.offset, floor, n)
				}
			}
		}
		if floor > (groups+20)*width && needed == 0 {
			t.Errorf("seed %d: nothing was ever trimmed", seed)
		}
	}
}

// However many groups are alive at a time, what has expired goes soon: a trim lags behind by a small part of them.
func TestTrimManyGroups(t *testing.T) {
	for _, live := range []int64{1, 10, maxSegments - 1, maxSegments, maxSegments + 1, 100, 1000, 20_000} {
		var trim Trim
		worst := int64(0)
		for w := range 4 * live {
			trim = trim.Add(2*w, w)
			if w > live {
				trim = trim.Expire(w-live, []byte{1})
			}
			if w > 2*live {
				worst = max(worst, w-live-trim.Needed()/2)
			}
		}
		if limit := live/16 + 1; worst > limit {
			t.Errorf("%d groups alive: %d that have expired are still needed, want %d at most", live, worst, limit)
		}
	}
}

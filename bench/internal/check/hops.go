package check

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// hops wants one pane per key and window that holds records of the key, with their number. Windows that end in the last
// moments of the input may be missing: whether they are complete depends on which partition had the last record.
type hops struct {
	keys    uint64
	windows int64
	first   int64     // number of the first hop, as a multiple of the hop since 1970
	last    int64     // number of hops after which a window need not be complete
	sums    [][]int32 // by key: records before each hop
	seen    []bool    // by key and hop of the end
}

func newHops(s workload.Spec, records int, g *workload.Gen) *hops {
	n := s.Span/workload.Hop + 1
	// A partition had its last record within twenty records of the end, give or take.
	last := s.Span/workload.Hop - 2 - 20*s.Span/int64(records)/workload.Hop
	h := &hops{last: last, keys: s.Keys, windows: s.Windows(), first: workload.Base / workload.Hop, sums: make([][]int32, s.Keys)}
	for k := range h.sums {
		h.sums[k] = make([]int32, n+1)
	}
	var r workload.Rec
	for g.Next(&r) {
		h.sums[r.ID][r.Time/workload.Hop-h.first+1]++
	}
	for _, sums := range h.sums {
		for i := range n {
			sums[i+1] += sums[i]
		}
	}
	h.seen = make([]bool, int64(s.Keys)*h.ends())
	return h
}

// ends is how many ends of windows there are.
func (h *hops) ends() int64 { return int64(len(h.sums[0])) + h.windows }

// want is the number of records of a key in the window that ends so many hops after the first.
func (h *hops) want(id uint64, end int64) int64 {
	sums := h.sums[id]
	last := int64(len(sums) - 1)
	return int64(sums[min(max(end, 0), last)] - sums[min(max(end-h.windows, 0), last)])
}

// Record implements Checker.
func (h *hops) Record(key, value []byte) error {
	if len(key) != workload.KeySize+8 || len(value) != 8 || workload.ID(key[:workload.KeySize]) >= h.keys {
		return fmt.Errorf("check: record of %d+%d bytes, key %x", len(key), len(value), key)
	}
	id, ms := workload.ID(key[:workload.KeySize]), int64(binary.BigEndian.Uint64(key[workload.KeySize:]))
	end := ms/workload.Hop - h.first
	if ms%workload.Hop != 0 || end <= 0 || end >= h.ends() {
		return fmt.Errorf("check: window of key %d ends at %d", id, ms)
	}
	if seen := &h.seen[int64(id)*h.ends()+end]; *seen {
		return fmt.Errorf("check: key %d has the window that ends at %d twice", id, ms)
	} else {
		*seen = true
	}
	if got, want := int64(binary.BigEndian.Uint64(value)), h.want(id, end); got != want {
		return fmt.Errorf("check: key %d has %d in the window that ends at %d, want %d", id, got, ms, want)
	}
	return nil
}

// Finish implements Checker.
func (h *hops) Finish() error {
	for id := range h.keys {
		for end := int64(1); end <= h.last; end++ {
			if h.want(id, end) > 0 && !h.seen[int64(id)*h.ends()+end] {
				return fmt.Errorf("check: key %d lacks the window that ends at %d", id, (h.first+end)*workload.Hop)
			}
		}
	}
	return nil
}

package nexmark

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// number is an encoded key.
func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// naiveHotItems counts every bid once for each of its five windows.
func naiveHotItems(input arrivals, emit func(Row)) {
	counts := map[int64]map[int64]int64{} // by end of the window and auction
	for _, e := range input {
		if e.Bid == nil {
			continue
		}
		first := e.Bid.DateTime/2000*2000 + 2000
		for end := first; end < first+10_000; end += 2000 {
			if counts[end] == nil {
				counts[end] = map[int64]int64{}
			}
			counts[end][e.Bid.Auction]++
		}
	}
	for end, ofAuction := range counts {
		most := slices.Max(slices.Collect(maps.Values(ofAuction)))
		for auction, n := range ofAuction {
			if n == most {
				emit(Row{number(end), end - 1, fmt.Appendf(nil, `{"auction":%d,"num":%d,"starttime":%d,"endtime":%d}`, auction, n, end-10_000, end)})
			}
		}
	}
}

// naiveHighestBids keeps the bids of every ten seconds that no other has beaten.
func naiveHighestBids(input arrivals, emit func(Row)) {
	best := map[int64][]*Bid{}
	latest := map[int64]int64{}
	for _, e := range input {
		b := e.Bid
		if b == nil {
			continue
		}
		at := b.DateTime / 10_000
		latest[at] = max(latest[at], b.DateTime)
		switch have := best[at]; {
		case have == nil || b.Price > have[0].Price:
			best[at] = []*Bid{b}
		case b.Price == have[0].Price:
			best[at] = append(have, b)
		}
	}
	for at, list := range best {
		for _, b := range list {
			emit(Row{[]byte("all"), latest[at], offerJSON(b)})
		}
	}
}

// naiveSessions sorts the bids of each bidder and cuts where there is nothing for ten seconds.
func naiveSessions(input arrivals, emit func(Row)) {
	times := map[int64][]int64{}
	for _, e := range input {
		if b := e.Bid; b != nil {
			times[b.Bidder] = append(times[b.Bidder], b.DateTime)
		}
	}
	for bidder, list := range times {
		slices.Sort(list)
		first := 0
		for i := range list {
			if i+1 < len(list) && list[i+1]-list[i] < 10_000 {
				continue
			}
			emit(Row{number(bidder), list[i], activityJSON(bidder, int64(i+1-first), list[first], list[i]+10_000)})
			first = i + 1
		}
	}
}

func activityJSON(bidder, n, start, end int64) []byte {
	return fmt.Appendf(nil, `{"bidder":%d,"bid_count":%d,"starttime":%d,"endtime":%d}`, bidder, n, start, end)
}

// naivePeriods counts by the times of processing.
func naivePeriods(input arrivals, emit func(Row)) {
	type cell struct{ bidder, period int64 }
	counts := map[cell]int64{}
	for now, e := range input {
		if e.Bid != nil {
			counts[cell{e.Bid.Bidder, now / 10_000}]++
		}
	}
	for c, n := range counts {
		end := c.period*10_000 + 10_000
		emit(Row{number(c.bidder), end, activityJSON(c.bidder, n, end-10_000, end)})
	}
}

package nexmark

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// The windows of q5.
const (
	hotSize = 10 * time.Second
	hotHop  = 2 * time.Second
)

// HotItem is an auction with the most bids of a window: what q5 gives.
type HotItem struct {
	Auction int64 `json:"auction"`
	Num     int64 `json:"num"`
	Start   int64 `json:"starttime"`
	End     int64 `json:"endtime"`
}

// hotItems counts the bids of each auction and compares the counts of each window. The second step must find all counts
// of one window together: they get the window's last moment as their time, and windows of one hop tell those apart.
func hotItems(bids bids, out string) {
	bids.
		KeyBy("auction", func(b Bid) int64 { return b.Auction }).
		Window(window.Hopping(hotSize, hotHop)).
		Count("bids-of-auction", topology.PreAggregate()).
		Map(func(p topology.Pane[int64, int64]) auctionCount { return auctionCount{p.Key, p.Value, p.End} }).
		Process("time-of-window", func(out topology.Emitter[int64, auctionCount], r topology.Record[int64, auctionCount]) error {
			out.EmitAt(r.Value.End-1, r.Key, r.Value)
			return nil
		}).
		KeyBy("window", func(c auctionCount) int64 { return c.End }).
		Window(window.Tumbling(hotHop)).
		Aggregate("hottest", topology.Fold(hottest.add).Merge(hottest.merge), topology.PreAggregate()).
		Map(func(p topology.Pane[int64, hottest]) hotWindow { return hotWindow{p.Key, p.Value} }).
		FlatMap(hotWindow.each).
		To(out)
}

// auctionCount is how many bids an auction has in a window.
type auctionCount struct {
	Auction int64 `json:"auction"`
	Num     int64 `json:"num"`
	End     int64 `json:"end"`
}

// hottest are the auctions with the highest count.
type hottest struct {
	Num      int64   `json:"num"`
	Auctions []int64 `json:"auctions"`
}

func (h hottest) add(c auctionCount) hottest { return h.merge(hottest{c.Num, []int64{c.Auction}}) }

func (h hottest) merge(o hottest) hottest {
	switch {
	case o.Num > h.Num:
		return o
	case o.Num == h.Num:
		return hottest{h.Num, append(h.Auctions[:len(h.Auctions):len(h.Auctions)], o.Auctions...)}
	}
	return h
}

// hotWindow is the result of the window with this end.
type hotWindow struct {
	end int64
	hottest
}

func (w hotWindow) each(emit func(HotItem)) {
	for _, a := range w.Auctions {
		emit(HotItem{a, w.Num, w.end - hotSize.Milliseconds(), w.end})
	}
}

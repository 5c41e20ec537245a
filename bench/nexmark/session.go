package nexmark

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// Activity is how many bids a bidder has made in a while: what q11 and q12 give.
type Activity struct {
	Bidder int64 `json:"bidder"`
	Bids   int64 `json:"bid_count"`
	Start  int64 `json:"starttime"`
	End    int64 `json:"endtime"`
}

// ofBidder keys bids by who made them. Nothing else of them is needed, so nothing else goes through the repartition.
func ofBidder(bids bids) *topology.Stream[int64, int64] {
	return bids.
		Map(func(b Bid) int64 { return b.Bidder }).
		KeyBy("bidder", func(bidder int64) int64 { return bidder })
}

func sessions(bids bids, out string) {
	ofBidder(bids).
		Window(window.Session(10 * time.Second)).
		Count("bids-of-session").
		Map(func(p topology.Pane[int64, int64]) Activity { return Activity{p.Key, p.Value, p.Start, p.End} }).
		To(out)
}

package nexmark

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// highestBids looks for the highest price among all bids of a window, so there is one key. Bids are compared before they
// are repartitioned; what goes to the one task that has the windows are the highest of every source partition.
func highestBids(bids bids, out string) {
	bids.
		KeyBy("all", func(Bid) string { return "all" }, topology.Partitions(1)).
		Window(window.Tumbling(10*time.Second)).
		Aggregate("highest", topology.Fold(highest.add).Merge(highest.merge), topology.PreAggregate()).
		Values().
		FlatMap(highest.each).
		To(out)
}

// highest are the bids with the highest price.
type highest struct {
	Price  int64   `json:"price"`
	Offers []Offer `json:"offers"`
}

func (h highest) add(b Bid) highest {
	if b.Price < h.Price {
		return h
	}
	return h.merge(highest{b.Price, []Offer{b.offer()}})
}

func (h highest) merge(o highest) highest {
	switch {
	case o.Price > h.Price || len(h.Offers) == 0:
		return o
	case o.Price == h.Price:
		return highest{h.Price, append(h.Offers[:len(h.Offers):len(h.Offers)], o.Offers...)}
	}
	return h
}

func (h highest) each(emit func(Offer)) {
	for _, o := range h.Offers {
		emit(o)
	}
}

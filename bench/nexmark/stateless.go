package nexmark

import (
	"strings"
	"time"
)

// Offer is a bid without where it came from: what q0 and q7 give.
type Offer struct {
	Auction  int64  `json:"auction"`
	Bidder   int64  `json:"bidder"`
	Price    int64  `json:"price"`
	DateTime int64  `json:"dateTime"`
	Extra    string `json:"extra"`
}

func (b Bid) offer() Offer { return Offer{b.Auction, b.Bidder, b.Price, b.DateTime, b.Extra} }

func passThrough(bids bids, out string) {
	bids.Map(Bid.offer).To(out)
}

// Converted is an offer in another currency: what q1 gives.
type Converted struct {
	Auction  int64   `json:"auction"`
	Bidder   int64   `json:"bidder"`
	Price    Decimal `json:"price"`
	DateTime int64   `json:"dateTime"`
	Extra    string  `json:"extra"`
}

// inEuro converts dollars as the suite does.
func (b Bid) inEuro() Decimal { return Decimal(908 * b.Price) }

func (b Bid) converted() Converted {
	return Converted{b.Auction, b.Bidder, b.inEuro(), b.DateTime, b.Extra}
}

func convert(bids bids, out string) {
	bids.Map(Bid.converted).To(out)
}

// Price is what is offered for an auction: what q2 gives.
type Price struct {
	Auction int64 `json:"auction"`
	Price   int64 `json:"price"`
}

func selection(bids bids, out string) {
	bids.
		Filter(func(b Bid) bool { return b.Auction%123 == 0 }).
		Map(func(b Bid) Price { return Price{b.Auction, b.Price} }).
		To(out)
}

// Calculation is what q14 gives.
type Calculation struct {
	Auction  int64   `json:"auction"`
	Bidder   int64   `json:"bidder"`
	Price    Decimal `json:"price"`
	TimeType string  `json:"bidTimeType"`
	DateTime int64   `json:"dateTime"`
	Extra    string  `json:"extra"`
	Cs       int     `json:"c_counts"`
}

func calculate(bids bids, out string) {
	bids.
		Filter(func(b Bid) bool {
			price := b.inEuro()
			return price > 1_000_000*decimals && price < 50_000_000*decimals
		}).
		Map(func(b Bid) Calculation {
			return Calculation{
				Auction: b.Auction, Bidder: b.Bidder, Price: b.inEuro(), TimeType: timeOfDay(time.UnixMilli(b.DateTime).UTC()),
				DateTime: b.DateTime, Extra: b.Extra, Cs: strings.Count(b.Extra, "c"),
			}
		}).
		To(out)
}

func timeOfDay(t time.Time) string {
	switch h := t.Hour(); {
	case h >= 8 && h <= 18:
		return "dayTime"
	case h <= 6 || h >= 20:
		return "nightTime"
	}
	return "otherTime"
}

// Directories is what q22 gives. A directory the URL does not have is not there.
type Directories struct {
	Auction int64  `json:"auction"`
	Bidder  int64  `json:"bidder"`
	Price   int64  `json:"price"`
	Channel string `json:"channel"`
	Dir1    string `json:"dir1,omitzero"`
	Dir2    string `json:"dir2,omitzero"`
	Dir3    string `json:"dir3,omitzero"`
}

func splitURL(bids bids, out string) {
	bids.Map(func(b Bid) Directories {
		d := Directories{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, Channel: b.Channel}
		// "https:", "", host, and then the directories.
		parts := strings.SplitN(b.URL, "/", 7)
		for i, dir := range [...]*string{&d.Dir1, &d.Dir2, &d.Dir3} {
			if 3+i < len(parts) {
				*dir = parts[3+i]
			}
		}
		return d
	}).To(out)
}

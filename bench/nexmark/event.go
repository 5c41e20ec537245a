package nexmark

import "time"

// Person is somebody who has registered.
type Person struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	Email      string `json:"emailAddress"`
	CreditCard string `json:"creditCard"`
	City       string `json:"city"`
	State      string `json:"state"`
	DateTime   int64  `json:"dateTime"`
	Extra      string `json:"extra"`
}

// Auction is an item that is put up.
type Auction struct {
	ID          int64  `json:"id"`
	ItemName    string `json:"itemName"`
	Description string `json:"description"`
	InitialBid  int64  `json:"initialBid"`
	Reserve     int64  `json:"reserve"`
	DateTime    int64  `json:"dateTime"`
	Expires     int64  `json:"expires"`
	Seller      int64  `json:"seller"`
	Category    int64  `json:"category"`
	Extra       string `json:"extra"`
}

// Bid is what a bidder offers for an auction. Prices are whole cents.
type Bid struct {
	Auction  int64  `json:"auction"`
	Bidder   int64  `json:"bidder"`
	Price    int64  `json:"price"`
	Channel  string `json:"channel"`
	URL      string `json:"url"`
	DateTime int64  `json:"dateTime"`
	Extra    string `json:"extra"`
}

// Event is one of the three, or only a time, which ends an input. Times are ms since 1970.
type Event struct {
	Person  *Person  `json:"person,omitzero"`
	Auction *Auction `json:"auction,omitzero"`
	Bid     *Bid     `json:"bid,omitzero"`
	Mark    int64    `json:"mark,omitzero"`
}

// Time returns the event time.
func (e Event) Time() int64 {
	switch {
	case e.Bid != nil:
		return e.Bid.DateTime
	case e.Auction != nil:
		return e.Auction.DateTime
	case e.Person != nil:
		return e.Person.DateTime
	}
	return e.Mark
}

// When returns the event time.
func (e Event) When() time.Time { return time.UnixMilli(e.Time()) }

func (e Event) isBid() bool { return e.Bid != nil }
func (e Event) bid() Bid    { return *e.Bid }

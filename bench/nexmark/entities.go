package nexmark

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

var (
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	cities     = [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	firstNames = [...]string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = [...]string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
)

func (g *generator) person(n int64) *Person {
	r := g.rnd
	p := &Person{
		ID:    firstPerson + youngestPerson(n),
		Name:  firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))],
		Email: g.letters(3+r.IntN(5)) + "@" + g.letters(3+r.IntN(3)) + ".com",
		CreditCard: fmt.Sprintf("%04d %04d %04d %04d",
			r.IntN(10_000), r.IntN(10_000), r.IntN(10_000), r.IntN(10_000)),
		City:     cities[r.IntN(len(cities))],
		State:    states[r.IntN(len(states))],
		DateTime: g.time(n),
	}
	p.Extra = g.extra(8+len(p.Name)+len(p.Email)+len(p.CreditCard)+len(p.City)+len(p.State), personBytes)
	return p
}

func (g *generator) auction(n int64) *Auction {
	r := g.rnd
	seller := youngestPerson(n) / hotEvery * hotEvery
	if !g.hot(hotPerson) {
		seller = g.somePerson(n)
	}
	now, initial := g.time(n), g.price()
	// What is in flight when the auction ends: it takes up to twice the time in which so many auctions are put up.
	horizon := g.time(n+inFlight*cycle/auctions) - now
	a := &Auction{
		ID:          firstAuction + youngestAuction(n),
		ItemName:    g.letters(10 + r.IntN(10)),
		Description: g.letters(50 + r.IntN(50)),
		InitialBid:  initial,
		Reserve:     initial + g.price(),
		DateTime:    now,
		Expires:     now + 1 + r.Int64N(max(2*horizon, 1)),
		Seller:      firstPerson + seller,
		Category:    firstCategory + r.Int64N(categories),
	}
	a.Extra = g.extra(8*7+len(a.ItemName)+len(a.Description), auctionBytes)
	return a
}

func (g *generator) bid(n int64) *Bid {
	auction := max(youngestAuction(n), 0) / hotEvery * hotEvery
	if !g.hot(hotAuction) {
		auction = g.someAuction(n)
	}
	bidder := youngestPerson(n)/hotEvery*hotEvery + 1
	if !g.hot(hotPerson) {
		bidder = g.somePerson(n)
	}
	c := &g.channels[g.rnd.IntN(hotChannels)]
	if g.rnd.IntN(2) == 0 {
		c = &g.channels[hotChannels+g.rnd.IntN(len(g.channels)-hotChannels)]
	}
	return &Bid{
		Auction: firstAuction + auction, Bidder: firstPerson + bidder, Price: g.price(),
		Channel: c.name, URL: c.url, DateTime: g.time(n), Extra: g.extra(8*4, bidBytes),
	}
}

// hotChannels is how many channels, the first ones, half of the bids come through.
const hotChannels = 4

// channel is where a bidder comes from; it determines the URL.
type channel struct{ name, url string }

// newChannels returns the same 10,000 channels for every input.
func newChannels() []channel {
	g := &generator{rnd: rand.New(rand.NewPCG(1, 0x6368616e6e656c))}
	list := make([]channel, 0, hotChannels+10_000)
	for _, name := range [hotChannels]string{"Google", "Facebook", "Baidu", "Apple"} {
		list = append(list, channel{name, g.url()})
	}
	for i := range uint32(cap(list) - hotChannels) {
		c := channel{fmt.Sprintf("channel-%d", i), g.url()}
		if g.rnd.IntN(10) > 0 {
			c.url += fmt.Sprintf("&channel_id=%d", bits.Reverse32(i)>>1)
		}
		list = append(list, c)
	}
	return list
}

func (g *generator) url() string {
	return "https://www.nexmark.com/" + g.letters(5) + "/" + g.letters(5) + "/" + g.letters(5) + "/item.htm?query=1"
}

// extra returns text that fills an event of so many bytes up to the average, give or take a fifth of what is missing.
func (g *generator) extra(have, average int) string {
	if have >= average {
		return ""
	}
	missing := average - have
	spread := int(math.Round(float64(missing) * 0.2))
	n := missing - spread
	if spread > 0 {
		n += g.rnd.IntN(2 * spread)
	}
	return g.letters(n)
}

// letters returns a word of n letters.
func (g *generator) letters(n int) string {
	g.text = g.text[:0]
	for x := uint64(0); len(g.text) < n; x /= 26 {
		if len(g.text)%12 == 0 {
			x = g.rnd.Uint64()
		}
		g.text = append(g.text, 'a'+byte(x%26))
	}
	return string(g.text)
}

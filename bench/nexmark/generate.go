package nexmark

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// The shape of an input. Of every cycle of events the first are persons, then come auctions, then bids.
const (
	cycle    = 50
	persons  = 1
	auctions = 3

	firstPerson   = 1000 // ids begin here
	firstAuction  = 1000
	firstCategory = 10
	categories    = 5

	activePeople = 1000 // the youngest, who bid and sell
	inFlight     = 100  // the youngest auctions, which are bid for
	lead         = 10   // ids beyond the youngest are used as well

	hotEvery   = 100 // one person and one auction of so many are hot
	hotAuction = 2   // 1-1/hotAuction of the bids are for the hot auction
	hotPerson  = 4   // 1-1/hotPerson of the bids and auctions are by the hot person

	personBytes, auctionBytes, bidBytes = 200, 500, 100 // what an event is filled up to on average
)

// start is the event time of the first event unless told otherwise, 2026-01-01T00:00Z.
const start int64 = 1767225600000

// Options say which input to generate.
type Options struct {
	// Events is the number of persons, auctions and bids together.
	Events int
	// Seed tells one input from another.
	Seed uint64
	// Start is the event time of the first event, in ms since 1970. Default 2026-01-01T00:00Z.
	Start int64
	// Every is the event time between two events. Default 100 µs, which is 10,000 events a second.
	Every time.Duration
	// Delayed is the share of events that come later than younger ones, from 0 to 1. Default 0.
	Delayed float64
	// MaxDelay is how much later in event time they come, at most; whole milliseconds. Default MaxDelay.
	MaxDelay time.Duration
}

// MaxDelay is the longest delay of an event that the queries allow for.
const MaxDelay = 3 * time.Second

func (o Options) withDefaults() Options {
	if o.Start == 0 {
		o.Start = start
	}
	if o.Every <= 0 {
		o.Every = 100 * time.Microsecond
	}
	if o.MaxDelay <= 0 || o.MaxDelay > MaxDelay {
		o.MaxDelay = MaxDelay
	}
	return o
}

// time returns the event time of event n.
func (o *Options) time(n int64) int64 { return o.Start + int64(o.Every)*n/int64(time.Millisecond) }

// Generate yields the events in the order in which they come. The same options give the same events.
func Generate(o Options) iter.Seq[Event] {
	o = o.withDefaults()
	return func(yield func(Event) bool) {
		g := newGenerator(o)
		var d delays
		for n := range int64(o.Events) {
			e := g.event(n)
			now := e.Time()
			for d.due(now) {
				if !yield(d.pop()) {
					return
				}
			}
			if o.Delayed > 0 && g.rnd.Float64() < o.Delayed {
				d.push(now+1+g.rnd.Int64N(o.MaxDelay.Milliseconds()), n, e)
				continue
			}
			if !yield(e) {
				return
			}
		}
		for d.due(math.MaxInt64) {
			if !yield(d.pop()) {
				return
			}
		}
	}
}

// End returns the event that ends an input, in every partition: it holds nothing but a time at which all windows are
// complete.
func End(o Options) Event {
	o = o.withDefaults()
	return Event{Mark: o.time(int64(o.Events)) + time.Minute.Milliseconds()}
}

// generator makes the events of an input one after the other.
type generator struct {
	Options
	rnd      *rand.Rand
	channels []channel
	text     []byte
}

func newGenerator(o Options) *generator {
	return &generator{Options: o, rnd: rand.New(rand.NewPCG(o.Seed, 0x6e65786d61726b)), channels: newChannels()}
}

func (g *generator) event(n int64) Event {
	switch at := n % cycle; {
	case at < persons:
		return Event{Person: g.person(n)}
	case at < persons+auctions:
		return Event{Auction: g.auction(n)}
	}
	return Event{Bid: g.bid(n)}
}

// youngestPerson returns how many persons there are before the youngest one at event n.
func youngestPerson(n int64) int64 { return n/cycle*persons + min(n%cycle, persons-1) }

// youngestAuction returns how many auctions there are before the youngest one at event n, -1 if there is none.
func youngestAuction(n int64) int64 { return n/cycle*auctions + min(n%cycle-persons, auctions-1) }

// somePerson returns one of those who are active, or about to register.
func (g *generator) somePerson(n int64) int64 {
	all := youngestPerson(n) + 1
	active := min(all, activePeople)
	return all - active + g.rnd.Int64N(active+lead)
}

// someAuction returns one of those in flight, or about to be put up.
func (g *generator) someAuction(n int64) int64 {
	youngest := max(youngestAuction(n), 0)
	oldest := max(youngest-inFlight, 0)
	return oldest + g.rnd.Int64N(youngest-oldest+1+lead)
}

// hot tells with a probability of 1-1/ratio that the hot one is meant.
func (g *generator) hot(ratio int64) bool { return g.rnd.Int64N(ratio) > 0 }

// price spreads over six powers of ten.
func (g *generator) price() int64 { return int64(math.Round(math.Pow(10, 6*g.rnd.Float64()) * 100)) }

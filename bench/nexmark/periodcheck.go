package nexmark

import (
	"encoding/json/v2"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Periods checks the output of q12 where nobody knows when an event was processed: the periods of each bidder must be
// aligned, come once each, and add up to the bidder's bids.
type Periods struct {
	left map[int64]int64 // bids not yet seen, by bidder
	seen map[Activity]bool
	bad  error
}

// NewPeriods returns a check for an input.
func NewPeriods(events iter.Seq[Event]) *Periods {
	p := &Periods{left: map[int64]int64{}, seen: map[Activity]bool{}}
	for e := range events {
		if e.Bid != nil {
			p.left[e.Bid.Bidder]++
		}
	}
	return p
}

// Add takes a row of the output.
func (p *Periods) Add(r Row) {
	if err := p.add(r); err != nil && p.bad == nil {
		p.bad = fmt.Errorf("nexmark: %v: %w", r, err)
	}
}

func (p *Periods) add(r Row) error {
	var a Activity
	if err := json.Unmarshal(r.Value, &a, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	again := a
	again.Bids = 0
	switch {
	case string(r.Key) != string(number(a.Bidder)) || r.Time != a.End:
		return fmt.Errorf("key or timestamp do not fit")
	case a.Bids <= 0 || a.End-a.Start != period.Milliseconds() || a.Start%period.Milliseconds() != 0:
		return fmt.Errorf("no period")
	case p.seen[again]:
		return fmt.Errorf("the period is there twice")
	}
	p.seen[again] = true
	p.left[a.Bidder] -= a.Bids
	return nil
}

// Finish returns the first difference.
func (p *Periods) Finish() error {
	if p.bad != nil {
		return p.bad
	}
	for _, bidder := range slices.Sorted(maps.Keys(p.left)) {
		if n := p.left[bidder]; n != 0 {
			return fmt.Errorf("nexmark: bidder %d: %d bids are missing", bidder, n)
		}
	}
	return nil
}

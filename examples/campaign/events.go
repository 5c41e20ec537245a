package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var campaigns = []string{"spring-sale", "new-shoes", "city-trips", "green-power", "night-owl", "road-bikes", "sea-view", "slow-coffee"}

// generator makes events as they come from phones: out of order, some late, some twice.
type generator struct {
	rand   *rand.Rand
	recent []AdEvent // some of the last ones
}

func newGenerator() *generator {
	return &generator{rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
}

// next makes the event that arrives at a time. Popular campaigns come first in the list.
func (g *generator) next(now time.Time) AdEvent {
	r := g.rand
	if len(g.recent) > 0 && r.IntN(100) == 0 {
		return g.recent[r.IntN(len(g.recent))] // its sender has not heard that it arrived
	}
	n := len(campaigns)
	e := AdEvent{
		ID:       fmt.Sprintf("%016x", r.Uint64()),
		At:       now.Add(-g.delay()).UTC().Truncate(time.Millisecond),
		Campaign: campaigns[min(r.IntN(n), r.IntN(n))],
		Kind:     "impression",
		Micros:   1000 + r.Int64N(4000),
		Test:     r.IntN(50) == 0,
	}
	if r.IntN(20) == 0 {
		e.Kind, e.Micros = "click", 200_000+r.Int64N(600_000)
	}
	if len(g.recent) < 500 {
		g.recent = append(g.recent, e)
	} else {
		g.recent[r.IntN(len(g.recent))] = e
	}
	return e
}

// delay is how long an event is on its way: mostly seconds, for a few from a phone without network minutes.
func (g *generator) delay() time.Duration {
	switch n := g.rand.IntN(10_000); {
	case n < 1:
		return 15*time.Minute + time.Duration(g.rand.Int64N(int64(5*time.Minute)))
	case n < 4:
		return 2*time.Minute + time.Duration(g.rand.Int64N(int64(3*time.Minute)))
	}
	return min(time.Duration(g.rand.ExpFloat64()*float64(2*time.Second)), 20*time.Second)
}

// The first start finds some minutes of events waiting, as if the app had been away.
const (
	backlog     = 3 * time.Minute
	backlogStep = 10 * time.Millisecond // between two of them
)

// produce sends rate events a second until ctx ends, and counts those the broker has acknowledged.
func produce(ctx context.Context, cl *kgo.Client, rate int, sent *atomic.Int64) error {
	var failed atomic.Pointer[error]
	g := newGenerator()
	send := func(now time.Time) error {
		e := g.next(now)
		value, err := json.Marshal(e)
		if err != nil {
			return err
		}
		// The key spreads events over partitions; the app brings them together by campaign.
		cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: eventsTopic, Key: []byte(e.ID), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
				return
			}
			sent.Add(1)
		})
		return nil
	}
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, eventsTopic)
	if err != nil {
		return err
	}
	first := true
	ends.Each(func(o kadm.ListedOffset) { first = first && o.Offset <= 0 })
	if now := time.Now(); first {
		for at := now.Add(-backlog); at.Before(now); at = at.Add(backlogStep) {
			if err := send(at); err != nil {
				return err
			}
		}
	}
	const step = 50 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	owed := 0.0
	for ctx.Err() == nil && failed.Load() == nil {
		for owed += float64(rate) * step.Seconds(); owed >= 1; owed-- {
			if err := send(time.Now()); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := cl.Flush(flush); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

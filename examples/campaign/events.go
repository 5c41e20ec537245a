package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var campaigns = []string{"spring-sale", "new-shoes", "city-trips", "green-power", "night-owl", "road-bikes", "sea-view", "slow-coffee"}

// randomEvent makes an event; popular campaigns come first in the list.
func randomEvent(r *rand.Rand) AdEvent {
	n := len(campaigns)
	e := AdEvent{
		ID:       fmt.Sprintf("%016x", r.Uint64()),
		Campaign: campaigns[min(r.IntN(n), r.IntN(n))],
		Kind:     "impression",
		Micros:   1000 + r.Int64N(4000),
		Test:     r.IntN(50) == 0,
	}
	if r.IntN(20) == 0 {
		e.Kind, e.Micros = "click", 200_000+r.Int64N(600_000)
	}
	return e
}

// produce sends rate events a second until ctx ends, and counts those the broker has acknowledged.
func produce(ctx context.Context, cl *kgo.Client, rate int, sent *atomic.Int64) error {
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	const step = 50 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	owed := 0.0
	for ctx.Err() == nil {
		for owed += float64(rate) * step.Seconds(); owed >= 1; owed-- {
			e := randomEvent(r)
			value, err := json.Marshal(e)
			if err != nil {
				return err
			}
			// The key spreads events over partitions; the app brings them together by campaign.
			cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: eventsTopic, Key: []byte(e.ID), Value: value}, func(_ *kgo.Record, err error) {
				if err == nil {
					sent.Add(1)
				}
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return cl.Flush(flush)
}

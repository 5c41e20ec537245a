package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The city is a grid of cells.
const (
	columns = 16
	rows    = 8
)

// cell is the key of a place, such as 11:3.
func cell(x, y float64) string {
	return fmt.Sprintf("%d:%d", min(max(int(x), 0), columns-1), min(max(int(y), 0), rows-1))
}

// city makes up drivers and riders. Most of them are around the centre, and a crowd of riders walks around it.
type city struct {
	rand    *rand.Rand
	drivers [][2]float64
	turn    int // the driver who pings next
}

func newCity(r *rand.Rand, drivers int) *city {
	c := &city{rand: r, drivers: make([][2]float64, drivers)}
	for i := range c.drivers {
		c.drivers[i] = c.around(columns/2, rows/2, 3)
	}
	return c
}

func (c *city) around(x, y, spread float64) [2]float64 {
	return [2]float64{x + c.rand.NormFloat64()*spread, y + c.rand.NormFloat64()*spread/2}
}

// at is a moment a little before now: records are on their way for up to a second.
func (c *city) at(now time.Time) time.Time {
	return now.Add(-min(time.Duration(c.rand.ExpFloat64()*float64(100*time.Millisecond)), time.Second)).UTC().Truncate(time.Millisecond)
}

// ping makes the next driver say where they are.
func (c *city) ping(now time.Time) (*kgo.Record, error) {
	d := &c.drivers[c.turn]
	for i, centre := range [2]float64{columns / 2, rows / 2} { // they drift, and turn round at the edge of the city
		d[i] += c.rand.NormFloat64()*0.2 + (centre-d[i])*0.01
	}
	p := Ping{Driver: c.turn, At: c.at(now)}
	c.turn = (c.turn + 1) % len(c.drivers)
	return record(pingsTopic, cell(d[0], d[1]), p)
}

// request makes somebody want a ride.
func (c *city) request(now time.Time) (*kgo.Record, error) {
	p := c.around(columns/2, rows/2, 3)
	if c.rand.IntN(10) < 4 {
		angle := float64(now.UnixMilli()%120_000) / 120_000 * 2 * math.Pi // round the city in two minutes
		p = c.around(columns/2+5*math.Cos(angle), rows/2+2.5*math.Sin(angle), 0.8)
	}
	return record(requestsTopic, cell(p[0], p[1]), Request{Rider: fmt.Sprintf("%08x", c.rand.Uint32()), At: c.at(now)})
}

func record(topic, key string, v any) (*kgo.Record, error) {
	b, err := json.Marshal(v)
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: b}, err
}

// live sends rate pings a second, and a ride request for every ten of them, until ctx ends or a record cannot be written.
func live(ctx context.Context, cl *kgo.Client, rate int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := newCity(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), max(rate*int(pingEvery/time.Second), 1))
	send := func(r *kgo.Record, err error) {
		if err != nil {
			cancel(err)
			return
		}
		cl.Produce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(err)
			}
		})
	}
	const step = 50 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	owed := 0.0
	for n := 0; ctx.Err() == nil; {
		for owed += float64(rate) * step.Seconds(); owed >= 1; owed-- {
			send(c.ping(time.Now()))
			if n++; n%10 == 0 {
				send(c.request(time.Now()))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	flush, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if err := cl.Flush(flush); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != ctx.Err() {
		return err
	}
	return nil
}

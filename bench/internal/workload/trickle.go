package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Updates are records with keys of a workload that are written to its input besides Load.
type Updates struct {
	// N is how many; 0: until the context ends.
	N int
	// Rate is how many a second; 0: as fast as it goes.
	Rate int
	// Seed chooses keys and values.
	Seed uint64
	// At, unless nil, says the key number and the timestamp in ms of record i, instead of a random key and the time it was due, which
	// its value has all the same.
	At func(i int) (id uint64, ms int64)
	// Sent, unless nil, is called with every record, in the order of the input. The slices are its own.
	Sent func(key, value []byte, ms int64)
}

// Trickle writes rate records a second with keys of s to its input until ctx ends.
func Trickle(ctx context.Context, addr string, s Spec, rate int, seed uint64) error {
	return Update(ctx, addr, s, Updates{Rate: rate, Seed: seed + 1})
}

// Update writes records until there are enough or ctx ends. When it returns, without an error, all of them have been
// acknowledged. A record's time, in its value too, is when it was due, unless At says otherwise.
func Update(ctx context.Context, addr string, s Spec, u Updates) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return fmt.Errorf("workload: update: %w", err)
	}
	defer cl.Close()
	n := u.N
	if n == 0 {
		n = 1 << 31
	}
	s.Fill = false
	g := NewGen(s, n, u.Seed)
	failed := make(chan error, 1)
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}
	// What was begun is finished, for a caller that counts on it.
	sending := context.WithoutCancel(ctx)
	send := func(r *Rec, at time.Time) {
		r.Time = at.UnixMilli()
		ms := r.Time
		if u.At != nil {
			r.ID, ms = u.At(int(r.Seq))
		}
		rec := &kgo.Record{Topic: s.Input(), Timestamp: time.UnixMilli(ms), Key: AppendKey(nil, r.ID), Value: g.AppendValue(nil, r)}
		if u.Sent != nil {
			u.Sent(rec.Key, rec.Value, ms)
		}
		cl.Produce(sending, rec, done)
	}
	finish := func() error {
		if err := cl.Flush(sending); err != nil {
			return fmt.Errorf("workload: update: %w", err)
		}
		select {
		case err := <-failed:
			return fmt.Errorf("workload: update: %w", err)
		default:
			return nil
		}
	}
	var r Rec
	if u.Rate == 0 {
		for ctx.Err() == nil && g.Next(&r) {
			send(&r, time.Now())
		}
		return finish()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	period := time.Duration(float64(time.Second) / float64(u.Rate))
	began, sent := time.Now(), 0
	for sent < n {
		select {
		case <-ctx.Done():
			return finish()
		case err := <-failed:
			return fmt.Errorf("workload: update: %w", err)
		case now := <-tick.C:
			for due := int(now.Sub(began).Seconds() * float64(u.Rate)); sent < due && g.Next(&r); sent++ {
				send(&r, began.Add(time.Duration(sent)*period))
			}
		}
	}
	return finish()
}

package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// watcher reads what becomes committed in an output topic beyond its end, on a goroutine that close waits for. The values
// must be those of Update: how long each took from when it was due is kept.
type watcher struct {
	client *kgo.Client
	first  chan time.Time // of the first record
	done   chan struct{}

	mu   sync.Mutex
	seen []arrival
}

type arrival struct {
	due  time.Time
	took time.Duration
}

func (b *bench) watch(ctx context.Context, s workload.Spec) (*watcher, error) {
	ends, err := b.adm.ListEndOffsets(ctx, s.Output())
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) { from[o.Partition] = kgo.NewOffset().At(o.Offset) })
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Output(): from}), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	w := &watcher{client: cl, first: make(chan time.Time, 1), done: make(chan struct{})}
	go w.run(ctx)
	return w, nil
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.done)
	for {
		f := w.client.PollFetches(ctx)
		if f.IsClientClosed() || ctx.Err() != nil {
			return
		}
		now := time.Now()
		w.mu.Lock()
		if len(w.seen) == 0 && f.NumRecords() > 0 {
			w.first <- now
		}
		f.EachRecord(func(r *kgo.Record) {
			due := time.UnixMilli(workload.Time(r.Value))
			w.seen = append(w.seen, arrival{due, now.Sub(due)})
		})
		w.mu.Unlock()
	}
}

func (w *watcher) close() {
	w.client.Close()
	<-w.done
}

// between returns the times in ms, ascending, of the records that were due in between.
func (w *watcher) between(from, to time.Time) []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ms []float64
	for _, a := range w.seen {
		if !a.due.Before(from) && a.due.Before(to) {
			ms = append(ms, a.took.Seconds()*1e3)
		}
	}
	slices.Sort(ms)
	return ms
}

// quantile returns a value of an ascending list, 0 of an empty one.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

// wait returns when the first record arrived.
func (w *watcher) wait(ctx context.Context, limit time.Duration) (time.Time, error) {
	select {
	case t := <-w.first:
		return t, nil
	case <-time.After(limit):
		return time.Time{}, errors.New("no new output")
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

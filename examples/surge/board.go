package main

import (
	"context"
	"encoding/json/v2"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// board is the content of the app's topic: the last window of every cell.
type board struct {
	hop time.Duration

	mu    sync.Mutex
	cells map[string]Surge
	ends  map[int32]time.Time // of the newest window in each partition
}

func newBoard(hop time.Duration) *board {
	return &board{hop: hop, cells: map[string]Surge{}, ends: map[int32]time.Time{}}
}

// follow reads the app's topic until ctx ends, committed records only.
func (b *board) follow(ctx context.Context, addrs []string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(surgeTopic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		var bad error
		b.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			var s Surge
			if err := json.Unmarshal(r.Value, &s); err != nil {
				bad = err
				return
			}
			b.cells[string(r.Key)] = s
			if s.End.After(b.ends[r.Partition]) {
				b.ends[r.Partition] = s.End
			}
		})
		b.mu.Unlock()
		if bad != nil {
			return bad
		}
	}
	return nil
}

// snapshot returns the newest window that all partitions have reached, and the cells that have something in it, or in a
// later one; the others are idle. A partition that falls back has only idle cells.
func (b *board) snapshot() (cells map[string]Surge, end time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var newest time.Time
	for _, e := range b.ends {
		if e.After(newest) {
			newest = e
		}
	}
	end = newest
	for _, e := range b.ends {
		if e.Before(end) && !e.Before(newest.Add(-2*b.hop)) {
			end = e
		}
	}
	cells = maps.Clone(b.cells)
	maps.DeleteFunc(cells, func(_ string, s Surge) bool { return s.End.Before(end) })
	return cells, end
}

package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// board holds what the app has shown, as any consumer of its topics sees it.
type board struct {
	mu      sync.Mutex
	totals  map[string]Totals
	minutes map[minute]pane    // the last of each
	refused map[string]refused // by event id
	fresh   []shown            // not taken yet
	began   kadm.ListedOffsets // ends of the topics when the program began: what is before that is not fresh
	panes   int64
	gap     error // a pane is missing or there twice
}

// refused is how often an event was too late, by what refused it.
type refused struct{ dedup, window int }

// shown is a line for the screen.
type shown struct {
	text string
	kind string
}

func newBoard() *board {
	return &board{totals: map[string]Totals{}, minutes: map[minute]pane{}, refused: map[string]refused{}}
}

// take returns the totals and the lines that have come since it was called last.
func (b *board) take() (map[string]Totals, []shown) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.fresh
	b.fresh = nil
	return maps.Clone(b.totals), fresh
}

// follow reads the app's topics from their start, committed records only.
func (b *board) follow(ctx context.Context, addrs []string) error {
	cl, err := reader(addrs, totalsTopic, minutesTopic, lateTopic)
	if err != nil {
		return err
	}
	defer cl.Close()
	if b.began, err = kadm.NewClient(cl).ListEndOffsets(ctx, minutesTopic, lateTopic); err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		var bad error
		b.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			if err := b.add(r); err != nil {
				bad = fmt.Errorf("%s/%d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
			}
		})
		b.mu.Unlock()
		if bad != nil {
			return bad
		}
	}
	return nil
}

func (b *board) add(r *kgo.Record) error {
	switch r.Topic {
	case totalsTopic:
		var t Totals
		if err := json.Unmarshal(r.Value, &t); err != nil {
			return err
		}
		b.totals[string(r.Key)] = t
	case minutesTopic:
		p, err := parsePane(r)
		if err != nil {
			return err
		}
		last, ok := b.minutes[p.minute]
		if want := last.index + 1; ok && p.index != want || !ok && p.index != 0 {
			b.gap = fmt.Errorf("pane %d of %s at %s came after pane %d", p.index, p.campaign, clock(p.start), last.index)
		}
		b.minutes[p.minute] = p
		b.panes++
		b.show(r, p.line(), p.timing.String())
	case lateTopic:
		l, err := parseRefusal(r)
		if err != nil {
			return err
		}
		n := b.refused[l.ID]
		if l.reason == "dedup_horizon" {
			n.dedup++
		} else {
			n.window++
		}
		b.refused[l.ID] = n
		b.show(r, l.line(), "refused")
	}
	return nil
}

// show hands a line to the screen, unless an earlier run has done so.
func (b *board) show(r *kgo.Record, text, kind string) {
	if end, _ := b.began.Lookup(r.Topic, r.Partition); r.Offset >= end.Offset {
		b.fresh = append(b.fresh, shown{text, kind})
	}
}

func reader(addrs []string, topics ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
}

package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// check waits until totals and minutes have caught up with the input and compares them with a plain recount. The last
// values of minutes that are not over come with their next early panes.
func check(ctx context.Context, addrs []string, b *board, every time.Duration, show func(), out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	in, err := recount(ctx, addrs)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	display := time.NewTicker(every)
	defer display.Stop()
	for {
		f, diff := b.compare(in)
		if diff == nil {
			show()
			fmt.Fprintf(out, "\nchecked: the totals are exactly those of a recount of all %d events, and so are the last panes of all %d minutes\n"+
				"(%d copies dropped, %d events too late for their minute, %d panes, numbered without a gap)\n",
				in.events, f.minutes, in.copies, f.late, f.panes)
			return nil
		}
		select {
		case <-tick.C:
		case <-display.C:
			show()
		case <-ctx.Done():
			show()
			return fmt.Errorf("not those of a recount of the input: %w", diff)
		}
	}
}

// input is what the events' topic holds, without traffic that does not count.
type input struct {
	byID   map[string]*copied
	events int64 // all
	copies int64
}

type copied struct {
	AdEvent
	times int
}

// found are the figures of a comparison.
type found struct{ minutes, late, panes int64 }

// compare adds the events up, each once, without those that the late topic holds, and returns what is different on the
// board, nil for nothing.
func (b *board) compare(in *input) (f found, diff error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	totals, minutes := map[string]Totals{}, map[minute]Totals{}
	for id, e := range in.byID {
		no := b.refused[id]
		if no.dedup == e.times { // no copy was in time to be compared with others
			f.late++
			continue
		}
		totals[e.Campaign] = totals[e.Campaign].Add(e.AdEvent)
		if no.window > 0 {
			f.late++
			continue
		}
		m := minute{e.Campaign, e.At.Truncate(time.Minute).UnixMilli()}
		minutes[m] = minutes[m].Add(e.AdEvent)
	}
	f.minutes, f.panes = int64(len(minutes)), b.panes
	if b.gap != nil {
		return f, b.gap
	}
	for m, want := range minutes {
		if got := b.minutes[m].Totals; got != want {
			return f, fmt.Errorf("%s at %s has %+v, not %+v", m.campaign, clock(m.start), got, want)
		}
	}
	if len(b.minutes) != len(minutes) {
		return f, errors.New("there are minutes without events")
	}
	if !maps.Equal(b.totals, totals) {
		return f, fmt.Errorf("the totals are %+v, not %+v", b.totals, totals)
	}
	return f, nil
}

// recount reads the whole input.
func recount(ctx context.Context, addrs []string) (*input, error) {
	cl, err := reader(addrs, eventsTopic)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, eventsTopic)
	if err != nil {
		return nil, err
	}
	left := make(map[int32]int64)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	in := &input{byID: make(map[string]*copied)}
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e AdEvent
			if uerr := json.Unmarshal(r.Value, &e); uerr != nil {
				err = uerr
			}
			if in.events++; e.Billable() {
				if c := in.byID[e.ID]; c != nil {
					c.times++
					in.copies++
				} else {
					in.byID[e.ID] = &copied{e, 1}
				}
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return in, nil
}

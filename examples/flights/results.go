package main

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// results is the content of the two result topics so far: the latest totals of every key.
type results struct {
	carriers, routes map[string]Totals
}

// flights returns how many flights are in the totals per carrier and per route.
func (r results) flights() (carriers, routes int64) {
	for _, t := range r.carriers {
		carriers += t.Flights
	}
	for _, t := range r.routes {
		routes += t.Flights
	}
	return carriers, routes
}

// follow reads the result topics from their beginning and calls fn several times a second, until fn returns false.
// Read committed: what a crash has left half done is never seen.
func follow(ctx context.Context, app string, fn func(results) bool, opts ...kgo.Opt) error {
	cl, err := kgo.NewClient(append(opts,
		kgo.ConsumeTopics(carrierTopic(app), routeTopic(app)),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.MetadataMinAge(100*time.Millisecond), // the topics may be a moment old
	)...)
	if err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	defer cl.Close()
	r := results{map[string]Totals{}, map[string]Totals{}}
	for {
		poll, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := cl.PollFetches(poll)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		var bad error
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) { // nothing new
				bad = errors.Join(bad, err)
			}
		})
		fetches.EachRecord(func(rec *kgo.Record) {
			var t Totals
			if err := json.Unmarshal(rec.Value, &t); err != nil {
				bad = errors.Join(bad, err)
			}
			if rec.Topic == carrierTopic(app) {
				r.carriers[string(rec.Key)] = t
			} else {
				r.routes[string(rec.Key)] = t
			}
		})
		if bad != nil {
			return fmt.Errorf("flights: read results: %w", bad)
		}
		if !fn(r) {
			return nil
		}
	}
}

// byFlights returns the keys, those with the most flights first.
func byFlights(m map[string]Totals) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b].Flights, m[a].Flights), cmp.Compare(a, b))
	})
}

// printTable prints all carriers and the busiest routes.
func printTable(w io.Writer, r results) {
	const busiest = 15
	table := func(title string, m map[string]Totals, limit int) {
		fmt.Fprintf(w, "\n%-10s %8s %10s %17s\n", title, "flights", "departed", "mean delay, min")
		for i, k := range byFlights(m) {
			if i == limit {
				fmt.Fprintf(w, "… and %d more\n", len(m)-limit)
				break
			}
			fmt.Fprintf(w, "%-10s %8d %10d %17.1f\n", k, m[k].Flights, m[k].Departed, m[k].MeanDelay())
		}
	}
	table("carrier", r.carriers, len(r.carriers))
	table("route", r.routes, busiest)
}

// line is one row of the table as JSON.
type line struct {
	By        string  `json:"by"` // carrier or route
	Key       string  `json:"key"`
	Flights   int64   `json:"flights"`
	Departed  int64   `json:"departed"`
	MeanDelay float64 `json:"mean_delay_min"`
}

// printJSON prints everything, one object per line.
func printJSON(w io.Writer, r results, hours []hour, tooLate []late) error {
	var all []any
	for _, t := range []struct {
		by string
		m  map[string]Totals
	}{{"carrier", r.carriers}, {"route", r.routes}} {
		for _, k := range byFlights(t.m) {
			all = append(all, line{t.by, k, t.m[k].Flights, t.m[k].Departed, t.m[k].MeanDelay()})
		}
	}
	for _, h := range hours {
		all = append(all, h)
	}
	for _, l := range tooLate {
		all = append(all, l)
	}
	for _, x := range all {
		b, err := json.Marshal(x)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", b); err != nil {
			return err
		}
	}
	return nil
}

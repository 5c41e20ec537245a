package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// loop computes the panes and the late flights of a file with a loop over it. Each partition has a watermark of its own.
// shown is how many flights the last panes of all hours and the late ones make together, with those of hours that stay
// open: all of them.
func loop(t *testing.T, file []byte, partitions int) (o output, shown int64) {
	t.Helper()
	type key struct {
		airport string
		start   time.Time
	}
	type open struct {
		totals Totals
		panes  int
	}
	share := kgo.StickyKeyPartitioner(nil).ForTopic("")
	newest := make([]time.Time, partitions)
	windows := make([]map[key]*open, partitions)
	pane := func(k key, w *open, timing string, mark time.Time) {
		o.hours = append(o.hours, hour{
			"hour", k.airport, k.start, k.start.Add(time.Hour), w.totals.Flights, w.totals.Departed, w.totals.MeanDelay(), timing, w.panes,
			!k.start.Add(3 * time.Hour).After(mark), // nobody can add to it any more
		})
		w.panes++
	}
	err := readFlights(bytes.NewReader(file), func(f Flight) error {
		p := share.Partition(&kgo.Record{Key: []byte(f.Origin)}, partitions)
		if windows[p] == nil {
			windows[p] = map[key]*open{}
		}
		// The flight moves the watermark first, then it is judged itself: by a millisecond less than this.
		if f.Scheduled.After(newest[p]) {
			newest[p] = f.Scheduled
			for k, w := range windows[p] {
				if mark := newest[p].Add(-30 * time.Minute); !k.start.Add(time.Hour).After(mark) && w.panes == 0 {
					pane(k, w, "ON_TIME", mark)
				}
			}
		}
		mark := newest[p].Add(-30 * time.Minute)
		k := key{f.Origin, f.Scheduled.Truncate(time.Hour)}
		end := k.start.Add(time.Hour)
		if !end.Add(2 * time.Hour).After(mark) {
			shown++
			o.late = append(o.late, late{"late", f, k.start, end, "expired", mark.Sub(end).Milliseconds()})
			return nil
		}
		w := windows[p][k]
		if w == nil {
			w = &open{}
			windows[p][k] = w
		}
		w.totals = w.totals.Add(f)
		if !end.After(mark) {
			pane(k, w, "LATE", mark)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range windows {
		for _, w := range p {
			shown += w.totals.Flights
		}
	}
	slices.SortFunc(o.hours, func(a, b hour) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Airport, b.Airport), cmp.Compare(a.Index, b.Index))
	})
	return o, shown
}

// compareHours compares every pane and every late flight with the loop.
func compareHours(t *testing.T, file []byte, partitions int, got output) {
	t.Helper()
	want, shown := loop(t, file, partitions)
	if shown != 6998 {
		t.Errorf("%d partitions: the loop lost flights: %d", partitions, shown)
	}
	if diff := gocmp.Diff(want.hours, got.hours); diff != "" {
		t.Errorf("%d partitions: panes: -loop +tidemark:\n%s", partitions, diff)
	}
	for _, o := range []output{want, got} {
		slices.SortStableFunc(o.late, func(a, b late) int { return cmp.Or(strings.Compare(a.Origin, b.Origin), a.SeenAt.Compare(b.SeenAt)) })
	}
	if diff := gocmp.Diff(want.late, got.late); diff != "" {
		t.Errorf("%d partitions: late flights: -loop +tidemark:\n%s", partitions, diff)
	}
}

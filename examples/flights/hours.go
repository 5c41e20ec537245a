package main

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/window"
)

// hour is one pane: what was known of the departures of one airport in one hour when the watermark had passed its end,
// or after a later one had come.
type hour struct {
	By        string    `json:"by"` // "hour"
	Airport   string    `json:"airport"`
	Start     time.Time `json:"window_start"`
	End       time.Time `json:"window_end"`
	Count     int64     `json:"count"`
	Departed  int64     `json:"departed"`
	MeanDelay float64   `json:"mean_delay_min"`
	Timing    string    `json:"timing"` // ON_TIME or LATE
	Index     int       `json:"index"`
	IsLast    bool      `json:"is_last"`
}

// late is a flight that came when its hour was closed.
type late struct {
	By string `json:"by"` // "late"
	Flight
	Start    time.Time `json:"window_start"`
	End      time.Time `json:"window_end"`
	Reason   string    `json:"reason"`
	Lateness int64     `json:"lateness_ms"` // how far the watermark was past the end of the hour
}

// parseHour reads a pane from a record: the key is the airport and 8 bytes for the start of the window, the headers
// say which pane of which window it is.
func parseHour(r *kgo.Record) (hour, error) {
	var p window.Pane
	var t Totals
	var err error
	for _, h := range r.Headers {
		switch h.Key {
		case window.PaneHeader:
			err = window.ParsePaneHeader(&p, h.Value)
		case window.BoundsHeader:
			p.Bounds, err = window.ParseBoundsHeader(h.Value)
		}
		if err != nil {
			return hour{}, err
		}
	}
	if err := json.Unmarshal(r.Value, &t); err != nil {
		return hour{}, err
	}
	return hour{
		By: "hour", Airport: string(r.Key[:max(len(r.Key)-8, 0)]), Start: utc(p.Start), End: utc(p.End),
		Count: t.Flights, Departed: t.Departed, MeanDelay: t.MeanDelay(),
		Timing: p.Timing.String(), Index: p.Index, IsLast: p.Last,
	}, nil
}

// parseLate reads a record of the late topic: the flight as it was in the input, with headers that say why it is here.
func parseLate(r *kgo.Record) (late, error) {
	l := late{By: "late"}
	var b window.Bounds
	var err error
	for _, h := range r.Headers {
		switch h.Key {
		case "tm-late-reason":
			l.Reason = string(h.Value)
		case "tm-late-by":
			l.Lateness, err = strconv.ParseInt(string(h.Value), 10, 64)
		case "tm-late-win":
			b, err = window.ParseBoundsHeader(h.Value)
		}
		if err != nil {
			return l, err
		}
	}
	l.Start, l.End = utc(b.Start), utc(b.End)
	return l, json.Unmarshal(r.Value, &l.Flight)
}

func utc(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// readHours reads all panes and late flights. The app must have ended, so that nothing is added meanwhile. Panes are
// ordered by hour, airport and number; late flights are in their order of arrival, partition by partition.
func readHours(ctx context.Context, app string, opts ...kgo.Opt) (hours []hour, tooLate []late, err error) {
	err = readAll(ctx, []string{hourTopic(app), lateTopic(app)}, func(r *kgo.Record) error {
		if r.Topic == lateTopic(app) {
			l, err := parseLate(r)
			tooLate = append(tooLate, l)
			return err
		}
		h, err := parseHour(r)
		hours = append(hours, h)
		return err
	}, opts...)
	slices.SortFunc(hours, func(a, b hour) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Airport, b.Airport), cmp.Compare(a.Index, b.Index))
	})
	return hours, tooLate, err
}

// printHours says how the hours went, and shows the worst of them.
func printHours(w io.Writer, hours []hour, tooLate []late, flights int64) {
	const worst = 10
	onTime, final := 0, map[[2]string]hour{}
	for _, h := range hours {
		if h.Timing == "ON_TIME" {
			onTime++
		}
		final[[2]string{h.Airport, h.Start.String()}] = h
	}
	open := flights - int64(len(tooLate)) // what no pane has shown
	for _, h := range final {
		open -= h.Count
	}
	fmt.Fprintf(w, "\n%d hours of airports were shown on time and corrected %d times by late flights; %d flights were too late for that,\n"+
		"and %d are in hours that are still open\n", onTime, len(hours)-onTime, len(tooLate), open)
	list := make([]hour, 0, len(final))
	for _, h := range final {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b hour) int {
		return cmp.Or(cmp.Compare(b.MeanDelay, a.MeanDelay), a.Start.Compare(b.Start), strings.Compare(a.Airport, b.Airport))
	})
	fmt.Fprintf(w, "\n%-8s %-17s %7s %9s %16s   %s\n", "airport", "hour (UTC)", "flights", "departed", "mean delay, min", "last shown")
	for _, h := range list[:min(worst, len(list))] {
		fmt.Fprintf(w, "%-8s %-17s %7d %9d %16.1f   %s, pane %d\n", h.Airport, h.Start.Format("Mon 2 Jan 15:04"), h.Count, h.Departed, h.MeanDelay, h.Timing, h.Index)
	}
	if len(list) > worst {
		fmt.Fprintf(w, "… and %d hours with less delay\n", len(list)-worst)
	}
}

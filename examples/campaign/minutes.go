package main

import (
	"encoding/json/v2"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/window"
)

// minute is one minute of one campaign.
type minute struct {
	campaign string
	start    int64 // ms
}

// pane is what was shown of a minute.
type pane struct {
	minute
	Totals
	timing window.Timing
	index  int
}

// parsePane reads a record of the minutes' topic: its key is the campaign and 8 bytes for the start of the minute, its
// headers say which pane it is.
func parsePane(r *kgo.Record) (p pane, err error) {
	var info window.Pane
	for _, h := range r.Headers {
		switch h.Key {
		case window.PaneHeader:
			err = window.ParsePaneHeader(&info, h.Value)
		case window.BoundsHeader:
			info.Bounds, err = window.ParseBoundsHeader(h.Value)
		}
		if err != nil {
			return p, err
		}
	}
	p.minute = minute{string(r.Key[:max(len(r.Key)-8, 0)]), info.Start}
	p.timing, p.index = info.Timing, info.Index
	return p, json.Unmarshal(r.Value, &p.Totals)
}

// line shows a pane.
func (p pane) line() string {
	return fmt.Sprintf("%s  %-14s %-8s pane %-3d %6d impressions %5d clicks %9.2f spent",
		clock(p.start), p.campaign, p.timing, p.index, p.Impressions, p.Clicks, float64(p.Micros)/1e6)
}

func clock(ms int64) string { return time.UnixMilli(ms).Format("15:04") }

// refusal is an event that came too late.
type refusal struct {
	AdEvent
	reason string
	by     time.Duration
}

// parseRefusal reads a record of the late topic: the event as it was sent, with headers that say why it is there.
func parseRefusal(r *kgo.Record) (l refusal, err error) {
	for _, h := range r.Headers {
		switch h.Key {
		case "tm-late-reason":
			l.reason = string(h.Value)
		case "tm-late-by":
			var ms int64
			if ms, err = strconv.ParseInt(string(h.Value), 10, 64); err != nil {
				return l, err
			}
			l.by = time.Duration(ms) * time.Millisecond
		}
	}
	return l, json.Unmarshal(r.Value, &l.AdEvent)
}

// line shows a refusal.
func (l refusal) line() string {
	return fmt.Sprintf("%s  %-14s too late by %s, kept in %s: %s", clock(l.At.UnixMilli()), l.Campaign, l.by.Round(time.Second), lateTopic, l.reason)
}

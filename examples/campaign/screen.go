package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// screen shows what happens line by line, and below it the table again and again: in place on a terminal, one below the
// other elsewhere.
type screen struct {
	out   io.Writer
	live  bool // a terminal: draw over the last table
	lines int  // of the last table
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, live: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

// picture is what one table shows.
type picture struct {
	lines  []shown // what is new
	totals map[string]Totals
	sent   int64
	rate   float64 // events a second
	apps   []*instance
	age    time.Duration
}

// colors are those of a terminal for panes by their timing, for events that came too late, and for restores.
var colors = map[string]string{"EARLY": "\x1b[2m", "ON_TIME": "\x1b[32m", "LATE": "\x1b[33m", "refused": "\x1b[31m", "restored": "\x1b[36m"}

func (s *screen) draw(p picture) {
	var events strings.Builder
	for _, l := range p.lines {
		if s.live {
			fmt.Fprintf(&events, "%s%s\x1b[0m\n", colors[l.kind], l.text)
		} else {
			events.WriteString(l.text + "\n")
		}
	}
	if len(p.lines) > 0 && !s.live {
		events.WriteString("\n")
	}
	var b strings.Builder
	if s.live {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%-14s %12s %8s %7s %12s  %s\n", "campaign", "impressions", "clicks", "rate", "spend", "share")
	names := slices.SortedFunc(maps.Keys(p.totals), func(x, y string) int {
		return cmp.Or(cmp.Compare(p.totals[y].Micros, p.totals[x].Micros), cmp.Compare(x, y))
	})
	var sum Totals
	for _, t := range p.totals {
		sum.Impressions, sum.Clicks, sum.Micros = sum.Impressions+t.Impressions, sum.Clicks+t.Clicks, sum.Micros+t.Micros
	}
	for _, n := range names {
		t := p.totals[n]
		bar := strings.Repeat("▇", int(t.Micros*100/max(sum.Micros, 1)*3/5))
		fmt.Fprintf(&b, "%-14s %12d %8d %6.2f%% %12.2f  %s\n", n, t.Impressions, t.Clicks, 100*float64(t.Clicks)/float64(max(t.Impressions, 1)), float64(t.Micros)/1e6, bar)
	}
	fmt.Fprintf(&b, "%-14s %12d %8d %7s %12.2f\n\n", "all", sum.Impressions, sum.Clicks, "", float64(sum.Micros)/1e6)
	fmt.Fprintf(&b, "%d events acknowledged, %.0f a second; running for %s\n", p.sent, p.rate, p.age.Round(time.Second))
	if at := eventTime(p.apps); !at.IsZero() {
		fmt.Fprintf(&b, "event time has reached %s, %s ago\n", at.Format(time.TimeOnly), time.Since(at).Round(time.Second))
	}
	for _, a := range p.apps {
		b.WriteString(a.line() + "\n")
	}
	text, above := b.String(), ""
	if s.live {
		if s.lines > 0 {
			above = fmt.Sprintf("\x1b[%dA\x1b[J", s.lines)
		}
		s.lines = strings.Count(text, "\n")
	} else {
		text += "\n"
	}
	io.WriteString(s.out, above+events.String()+text)
}

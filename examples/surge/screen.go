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

// screen shows the city again and again: a map in place on a terminal, a line elsewhere.
type screen struct {
	out   io.Writer
	live  bool
	lines int // of the last map
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, live: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

// legend are the colors of the map, from calm to hot: the ratio up to which they are taken, and the terminal's number.
var legend = []struct {
	below float64
	color int
}{{0.4, 22}, {0.7, 64}, {1, 136}, {1.5, 166}, {1e9, 124}}

func color(ratio float64) int {
	for _, l := range legend {
		if ratio < l.below {
			return l.color
		}
	}
	return legend[len(legend)-1].color
}

// draw shows the windows that end at a time.
func (s *screen) draw(cells map[string]Surge, end time.Time, size time.Duration) {
	drivers, requests := 0.0, int64(0)
	for _, c := range cells {
		drivers, requests = drivers+c.Drivers, requests+c.Requests
	}
	names := slices.SortedFunc(maps.Keys(cells), func(a, b string) int {
		return cmp.Or(cmp.Compare(cells[b].Ratio, cells[a].Ratio), cmp.Compare(a, b))
	})
	var hot strings.Builder
	for _, n := range names[:min(3, len(names))] {
		fmt.Fprintf(&hot, "  %s %.2f", n, cells[n].Ratio)
	}
	head := fmt.Sprintf("%s to %s: %.0f free drivers, %d requests, %d of %d cells idle, highest%s",
		end.Add(-size).Local().Format(time.TimeOnly), end.Local().Format(time.TimeOnly), drivers, requests, columns*rows-len(cells), columns*rows, hot.String())
	if !s.live {
		fmt.Fprintln(s.out, head)
		return
	}
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.lines)
	}
	b.WriteString(head + "\n\n")
	for y := range rows {
		for x := range columns {
			if c, ok := cells[cell(float64(x), float64(y))]; ok {
				fmt.Fprintf(&b, "\x1b[97;48;5;%dm%4.1f \x1b[0m", color(c.Ratio), c.Ratio)
			} else {
				b.WriteString("\x1b[2m  ·  \x1b[0m")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nrequests per driver: ")
	low := 0.0
	for _, l := range legend {
		fmt.Fprintf(&b, "\x1b[97;48;5;%dm from %.1f \x1b[0m", l.color, low)
		low = l.below
	}
	b.WriteString("  · idle\n")
	s.lines = strings.Count(b.String(), "\n")
	io.WriteString(s.out, b.String())
}

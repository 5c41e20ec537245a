package watermark

import (
	"math"
	"testing"
)

func TestReckoning(t *testing.T) {
	type report struct{ low, sent, heard int64 }
	for name, c := range map[string]struct {
		reports      []report
		wall, steady int64
		want         int64
		ok           bool
	}{
		"nothing heard":               {nil, 0, 0, 0, false},
		"one report has no pace":      {[]report{{100, 0, 0}}, 10, 10, 0, false},
		"stands still":                {[]report{{100, 0, 0}, {100, 2000, 2000}}, 3000, 3000, 100, true},
		"goes on":                     {[]report{{100, 0, 0}, {4100, 2000, 2000}}, 3000, 3000, 6100, true},
		"no further than the horizon": {[]report{{100, 0, 0}, {4100, 2000, 2000}}, 9000, 9000, 12_100, true},
		"the sender's clock is ahead": {[]report{{100, 50_000, 0}, {4100, 52_000, 2000}}, 3000, 3000, 4100, true},
		"the sender's clock is late":  {[]report{{100, -50_000, 0}, {4100, -48_000, 2000}}, 3000, 3000, 12_100, true},
		"the sender's clock was set":  {[]report{{100, 0, 0}, {4100, -1, 2000}}, 3000, 3000, 4100, true},
		"falls":                       {[]report{{100, 0, 0}, {50, 2000, 2000}}, 3000, 3000, 50, true},
		"silent for long":             {[]report{{100, 0, 0}, {4100, 2000, 2000}}, 3000, 14_001, 0, false},
		"leaps":                       {[]report{{math.MinInt64, 0, 0}, {math.MaxInt64, 1, 1}}, 4000, 1, math.MaxInt64, true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Reckoning
			for _, p := range c.reports {
				r.Report(p.low, p.sent, p.heard)
			}
			if got, ok := r.Low(c.wall, c.steady, 4000); got != c.want || ok != c.ok {
				t.Errorf("Low = %d, %v, want %d, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

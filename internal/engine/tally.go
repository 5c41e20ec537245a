package engine

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// What operators have counted reaches the metrics with the commit of the records it is about, and never before: an abort
// counts nothing, and nothing twice.

// tally returns what a task's operators have counted since the last seal, and remembers it as counted.
func (t *task) tally() []processor.Counters {
	now := t.proc.Counters()
	if len(t.counted) != len(now) {
		t.counted = make([]processor.Counters, len(now))
	}
	delta := make([]processor.Counters, len(now))
	for i := range now {
		delta[i] = now[i].Minus(t.counted[i])
	}
	copy(t.counted, now)
	return delta
}

// count adds a committed tally to the metrics.
func (m *Metrics) count(operators []string, tally []processor.Counters) {
	add := func(n uint64, c interface{ Add(float64) }) {
		if n > 0 {
			c.Add(float64(n))
		}
	}
	for i, c := range tally {
		if c == (processor.Counters{}) {
			continue
		}
		op := operators[i]
		add(c.In, m.operatorRecords.WithLabelValues(op, "in"))
		add(c.Folded, m.operatorRecords.WithLabelValues(op, "folded"))
		add(c.Duplicates, m.operatorRecords.WithLabelValues(op, "duplicate"))
		for r, n := range c.Late {
			if n > 0 {
				m.late.WithLabelValues(op, processor.Reason(r).String()).Add(float64(n))
			}
		}
		add(c.LateWindows, m.lateWindows.WithLabelValues(op))
		add(c.LateAdmitted, m.lateAdmitted.WithLabelValues(op))
		for timing, n := range c.Panes {
			add(n, m.panes.WithLabelValues(op, window.Timing(timing).String()))
		}
		if c.Combined > 0 {
			m.hotKey.WithLabelValues(op).Set(float64(c.Hottest) / float64(c.Combined))
		}
		add(c.Suppressed, m.panes.WithLabelValues(op, "suppressed"))
		add(c.Unfired, m.panes.WithLabelValues(op, "unfired"))
		add(c.Retractions, m.panes.WithLabelValues(op, "retraction"))
	}
}

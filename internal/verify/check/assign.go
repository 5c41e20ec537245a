package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Which windows an event belongs to, computed in the plainest way there is: nothing here knows package window.

// span is a window: start included, end excluded, in ms.
type span struct{ start, end int64 }

// calendar is the zone of the calendar windows.
var calendar = func() *time.Location {
	zone, err := time.LoadLocation(workload.DayZone)
	if err != nil {
		panic("check: " + err.Error())
	}
	return zone
}()

// spansOf returns the windows of an event in the order of their ends, none for sessions.
func spansOf(kind workload.EventKind, ts int64) []span {
	switch kind {
	case workload.Tumbling:
		size := workload.TumblingSize.Milliseconds()
		start := ts - (ts%size+size)%size
		return []span{{start, start + size}}
	case workload.Hopping, workload.Sliced:
		size, hop := workload.HoppingSize.Milliseconds(), workload.HoppingHop.Milliseconds()
		var out []span
		last := ts - (ts%hop+hop)%hop
		for start := last - size; start <= last; start += hop {
			if start <= ts && ts < start+size {
				out = append(out, span{start, start + size})
			}
		}
		return out
	case workload.Calendar:
		t := time.UnixMilli(ts).In(calendar)
		y, m, d := t.Date()
		return []span{{
			time.Date(y, m, d, 0, 0, 0, 0, calendar).UnixMilli(), time.Date(y, m, d+1, 0, 0, 0, 0, calendar).UnixMilli(),
		}}
	}
	return nil
}

// within says whether an event can lie in a window of that kind.
func within(kind workload.EventKind, ts int64, s span) bool {
	if kind == workload.Session {
		return s.start <= ts && ts+workload.SessionGap.Milliseconds() <= s.end
	}
	return slices.Contains(spansOf(kind, ts), s)
}

// sessionsOf divides the events of one user, none of which was refused, into sessions.
func sessionsOf(events []*event) map[span][]*event {
	gap := workload.SessionGap.Milliseconds()
	events = slices.SortedFunc(slices.Values(events), func(a, b *event) int { return cmp.Compare(a.Time, b.Time) })
	out := make(map[span][]*event)
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && events[to].Time-events[to-1].Time < gap {
			to++
		}
		out[span{events[from].Time, events[to-1].Time + gap}] = events[from:to]
		from = to
	}
	return out
}

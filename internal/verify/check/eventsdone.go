package check

import (
	"slices"

	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Open returns how much is still to come: ids of which nothing is known, and once the inputs have ended, windows that are
// not closed and events that are in no window and were not refused.
func (e *Events) Open() int {
	if e.open > 0 || !e.Ended() {
		return e.open
	}
	if e.windows > 0 {
		return e.windows
	}
	n := 0
	for _, o := range e.ops {
		for _, ev := range e.ids {
			if ev.passed > 0 && ev.late[o.index] == 0 && o.taken(ev) == 0 {
				n++
			}
		}
	}
	return n
}

// taken returns in which of its windows an event is, one bit each in the order of their ends. A session is the first.
func (o *op) taken(ev *event) (mask uint32) {
	ws := o.users[ev.User]
	if ws == nil {
		return 0
	}
	if o.Kind == workload.Session {
		if o.Mode == workload.Discarding {
			if ws.held[ev.ID] {
				return 1
			}
			return 0
		}
		for _, w := range ws.all {
			if w.start <= ev.Time && ev.Time < w.end && w.holds(ev) {
				return 1
			}
		}
		return 0
	}
	for i, s := range spansOf(o.Kind, ev.Time) {
		if w := ws.all[s]; w != nil && w.holds(ev) {
			mask |= 1 << i
		}
	}
	return mask
}

// holds says whether an event is in a window that is not gone.
func (w *win) holds(ev *event) bool {
	_, ok := slices.BinarySearch(w.ids, ev.ID)
	return ok && !w.gone
}

// Done reports, once all inputs must have had their effect; what windows hold only when the inputs have ended.
func (e *Events) Done() *Report {
	out := e.Now()
	for _, ev := range e.ids {
		switch {
		case ev.passed+ev.refused > ev.copies:
			out.Wrongly("event %d was sent %d times, passed %d times and was refused %d times", ev.ID, ev.copies, ev.passed, ev.refused)
		case ev.passed == 0 && ev.refused < ev.copies:
			out.lost(1, "event %d was sent %d times, refused %d times and never passed", ev.ID, ev.copies, ev.refused)
		case ev.passed == 0 && ev.watermark < ev.forgotten():
			out.lost(1, "event %d at %d was refused by deduplication, its partition was at %d", ev.ID, ev.Time, ev.watermark)
		}
	}
	for key, n := range e.bad {
		if n == 0 {
			out.lost(1, "undecodable input %s has no dead letter", key)
		}
	}
	if !e.Ended() {
		return out
	}
	for _, o := range e.ops {
		for _, ev := range e.ids {
			e.somewhere(out, o, ev)
		}
		for user, ws := range o.users {
			e.closed(out, o, user, ws)
			if o.Kind == workload.Session {
				e.sessions(out, o, user, ws)
			}
		}
	}
	e.agree(out)
	return out
}

// somewhere checks that an event is in its windows or was refused by them, and not both.
func (e *Events) somewhere(out *Report, o *op, ev *event) {
	mask, refused := o.taken(ev), ev.late[o.index] > 0
	switch {
	case ev.passed == 0 && (mask != 0 || refused):
		out.Wrongly("%s: event %d has not passed deduplication: in windows %b, refused %v", o.Name, ev.ID, mask, refused)
	case ev.passed == 0:
	case mask == 0 && !refused:
		out.lost(1, "%s: event %d of user %s at %d is in no window and was not refused", o.Name, ev.ID, ev.User, ev.Time)
	case mask != 0 && refused:
		out.duplicated("%s: event %d was refused and is in windows %b", o.Name, ev.ID, mask)
	case mask != 0 && o.Kind != workload.Session:
		for i, s := range spansOf(o.Kind, ev.Time) {
			if mask&(1<<i) != 0 {
				continue
			}
			// Windows close in the order of their ends.
			if mask&(1<<i-1) != 0 || ev.watermark < o.closes(s) {
				out.lost(1, "%s: event %d of user %s at %d is not in window %v, but in %b; its partition was at %d",
					o.Name, ev.ID, ev.User, ev.Time, s, mask, ev.watermark)
			}
		}
	}
}

// closed checks that every window has come to its end, by way of a pane on time.
func (e *Events) closed(out *Report, o *op, user string, ws *windows) {
	for _, w := range ws.all {
		if w.gone || w.part {
			continue
		}
		if !w.shows || !w.last || w.taken {
			out.Wrongly("%s, user %s, window %v: shown %v, last pane %v, retracted %v", o.Name, user, w.span, w.shows, w.last, w.taken)
		}
		// A window that came to be when the watermark had passed its end has none: then it has no early pane either, and all
		// of its events were late, or of a session the one that has made it what it is.
		late, inTime := false, false
		for _, id := range w.ids {
			ev := e.ids[id]
			if ev == nil {
				continue
			}
			late, inTime = late || ev.watermark >= w.span.last(), inTime || ev.watermark < w.span.last()
		}
		if o.Kind == workload.Session {
			inTime = !late && len(w.ids) > 0
		}
		if !w.onTime && (inTime || w.early) {
			out.Wrongly("%s, user %s, window %v has no pane on time", o.Name, user, w.span)
		}
	}
}

// sessions checks that the sessions in the end are those of the events that were not refused.
func (e *Events) sessions(out *Report, o *op, user string, ws *windows) {
	var in []*event
	seen := make(map[int64]bool)
	for _, hour := range e.users[user] {
		for _, ev := range hour {
			if o.taken(ev) == 0 {
				continue
			}
			in = append(in, ev)
			if ev.inTime() && !ws.onTime[ev.ID] {
				out.Wrongly("%s, user %s: event %d was in time, and is in no pane on time", o.Name, user, ev.ID)
			}
		}
	}
	want := sessionsOf(in)
	for s, events := range want {
		w := ws.all[s]
		if w == nil || w.gone || w.part {
			out.Wrongly("%s, user %s: no session %v of %d events", o.Name, user, s, len(events))
			continue
		}
		if o.Mode == workload.Discarding {
			continue // what was given out where is checked pane by pane
		}
		var ids []int64
		for _, ev := range events {
			ids = append(ids, ev.ID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, w.ids) {
			out.Wrongly("%s, user %s, session %v: holds %v, want %v", o.Name, user, s, w.ids, ids)
		}
	}
	for s, w := range ws.all {
		if w.gone || w.part {
			continue
		}
		if want[s] == nil {
			out.Wrongly("%s, user %s: session %v of %v is none", o.Name, user, s, w.ids)
		}
		for _, id := range w.ids {
			if seen[id] {
				out.duplicated("%s, user %s: event %d is in two sessions", o.Name, user, id)
			}
			seen[id] = true
		}
	}
}

// agree checks that the modes of a kind have taken the same events: they have the same input, and the same watermark
// whenever a record comes.
func (e *Events) agree(out *Report) {
	for _, o := range e.ops {
		first := e.ops[slices.IndexFunc(e.ops, func(x *op) bool { return x.Kind == o.Kind })]
		if o == first {
			continue
		}
		for _, ev := range e.ids {
			if a, b := first.taken(ev), o.taken(ev); a != b || ev.late[first.index] != ev.late[o.index] {
				out.Wrongly("event %d is in windows %b of %s and %b of %s", ev.ID, a, first.Name, b, o.Name)
			}
		}
	}
}

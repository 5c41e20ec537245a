package check

import (
	"encoding/json/v2"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/window"
)

// Events checks the workload events. What it is sure of rests on two facts that the inputs' log alone shows.
//
// The watermark an event meets at an operator is never ahead of the one its own partition had in front of it: the highest
// event time there less EventDelay. So an event whose window was still open by that must not be refused, and one whose
// window was not yet complete by that must be in the on-time pane. An event that was sent twice meets the lower of the two
// watermarks: if the copy that meets it is not the one that passes, another one passed before, under a lower watermark
// still.
//
// And every event is somewhere: sent again and dropped, refused by deduplication, refused by an operator, or in one window
// (of hopping ones, in those that were still open).
//
// Sums and numbers of a window could be right by accident; so a window holds the ids of its events, and each is accounted
// for.
type Events struct {
	ids     map[int64]*event
	users   map[string]hours
	highest map[int32]int64 // event time, by partition of the input
	bad     map[string]int  // undecodable inputs by key: their dead letters
	ends    int
	ops     []*op
	open    int // ids of which nothing is known
	windows int // that have shown something and were not closed
	panes   int
	r       Report
}

// event is one event with all that has become of it.
type event struct {
	workload.Event
	watermark int64   // the lowest of its copies'
	copies    int     // in the log
	refused   int     // of those, by deduplication
	passed    int     // how often it came through
	late      [16]int // how often an operator refused it
}

// hours are the events of a user by the hour they fall into.
type hours map[int64][]*event

const hour = int64(time.Hour / time.Millisecond)

func hourOf(ts int64) int64 { return (ts - (ts%hour+hour)%hour) / hour }

// unknown is the watermark of a partition without records.
const unknown = math.MinInt64

// NewEvents returns a checker that has seen nothing.
func NewEvents() *Events {
	e := &Events{ids: make(map[int64]*event), users: make(map[string]hours), highest: make(map[int32]int64), bad: make(map[string]int)}
	for i, o := range workload.EventOps() {
		e.ops = append(e.ops, &op{EventOp: o, index: i, users: make(map[string]*windows)})
	}
	return e
}

// Input takes the next record of an input partition.
func (e *Events) Input(r Record) {
	var in workload.Event
	if err := json.Unmarshal(r.Value, &in); err != nil {
		e.bad[string(r.Key)] = 0
		return
	}
	w := int64(unknown)
	if high, ok := e.highest[r.Partition]; ok {
		w = high - workload.EventDelay.Milliseconds() - 1
		e.highest[r.Partition] = max(high, in.Time)
	} else {
		e.highest[r.Partition] = in.Time
	}
	if in.End {
		e.ends++
		return
	}
	ev := e.ids[in.ID]
	if ev == nil {
		ev = &event{Event: in, watermark: w}
		e.ids[in.ID] = ev
		e.open++
		if e.users[in.User] == nil {
			e.users[in.User] = make(hours)
		}
		h := hourOf(in.Time)
		e.users[in.User][h] = append(e.users[in.User][h], ev)
	}
	if ev.Event != in {
		e.r.Wrongly("event input %s: %+v was %+v", r.at(), in, ev.Event)
	}
	ev.copies++
	ev.watermark = min(ev.watermark, w)
}

// between returns the events of a user with start <= time < end.
func (e *Events) between(user string, s span) (out []*event) {
	for h := hourOf(s.start); h <= hourOf(s.end-1); h++ {
		for _, ev := range e.users[user][h] {
			if s.start <= ev.Time && ev.Time < s.end {
				out = append(out, ev)
			}
		}
	}
	return out
}

// find returns the event that a record is about.
func (e *Events) find(what string, r Record) *event {
	var out workload.Event
	if err := json.Unmarshal(r.Value, &out); err != nil {
		e.r.Wrongly("%s %s: %v", what, r.at(), err)
		return nil
	}
	ev := e.ids[out.ID]
	if ev == nil || ev.Event != out || string(r.Key) != out.User {
		e.r.Wrongly("%s %s: %+v was never sent", what, r.at(), out)
		return nil
	}
	return ev
}

// heard notes that something is known of an event.
func (e *Events) heard(ev *event) {
	if ev.passed+ev.refused == 0 {
		e.open--
	}
}

// Once takes the next event that deduplication let pass.
func (e *Events) Once(r Record) {
	ev := e.find("event passed", r)
	if ev == nil {
		return
	}
	e.heard(ev)
	if ev.passed++; ev.passed > 1 {
		e.r.duplicated("event %d at %s has passed deduplication %d times", ev.ID, r.at(), ev.passed)
	}
}

// Late takes the next record of the topic of late records.
func (e *Events) Late(r Record) {
	ev := e.find("late record", r)
	if ev == nil {
		return
	}
	who, why := string(r.Header("tm-late-op")), string(r.Header("tm-late-reason"))
	w, err := strconv.ParseInt(string(r.Header("tm-late-wm")), 10, 64)
	if err != nil {
		e.r.Wrongly("late record %s: watermark: %v", r.at(), err)
		return
	}
	if who == workload.DedupStore {
		e.tooOld(ev, r, why, w)
		return
	}
	for _, o := range e.ops {
		if o.Name == who {
			e.tooLate(o, ev, r, why, w)
			return
		}
	}
	e.r.Wrongly("late record %s: refused by %q", r.at(), who)
}

// tooOld notes that deduplication has refused a copy of an event.
func (e *Events) tooOld(ev *event, r Record, why string, w int64) {
	e.heard(ev)
	ev.refused++
	if why != "dedup_horizon" || w < ev.forgotten() {
		e.r.Wrongly("late record %s: event %d at %d refused as %s at watermark %d", r.at(), ev.ID, ev.Time, why, w)
	}
}

// forgotten returns the watermark at which the id of an event is no longer known: they are dropped by the minute.
func (ev *event) forgotten() int64 {
	minute := time.Minute.Milliseconds()
	return ev.Time - (ev.Time%minute+minute)%minute + minute + workload.EventHorizon.Milliseconds()
}

// tooLate notes that an operator has refused an event.
func (e *Events) tooLate(o *op, ev *event, r Record, why string, w int64) {
	if ev.late[o.index]++; ev.late[o.index] > 1 {
		e.r.duplicated("event %d is refused by %s %d times", ev.ID, o.Name, ev.late[o.index])
		return
	}
	b, err := window.ParseBoundsHeader(r.Header("tm-late-win"))
	if err != nil {
		e.r.Wrongly("late record %s: %v", r.at(), err)
		return
	}
	s := span{b.Start, b.End}
	if o.Kind == workload.Session {
		// The session that is closed is one the event would touch, or the one it would make.
		if gap := workload.SessionGap.Milliseconds(); s.end <= ev.Time || ev.Time+gap <= s.start {
			e.r.Wrongly("late record %s: event %d at %d does not touch session %v", r.at(), ev.ID, ev.Time, s)
		}
	} else if all := spansOf(o.Kind, ev.Time); s != all[len(all)-1] {
		e.r.Wrongly("late record %s: event %d at %d is refused by %v, not by its last window %v", r.at(), ev.ID, ev.Time, s, all[len(all)-1])
	}
	if why != "expired" || w < o.closes(s) {
		e.r.Wrongly("late record %s: event %d refused as %s by %s %v at watermark %d", r.at(), ev.ID, why, o.Name, s, w)
	}
	if ev.watermark < o.closes(s) {
		e.r.lost(1, "event %d is refused by %s %v, though its partition was at %d", ev.ID, o.Name, s, ev.watermark)
	}
}

// last is the watermark at which a window is complete.
func (s span) last() int64 { return s.end - 1 }

// closes is the watermark at which a window takes nothing any more.
func (o *op) closes(s span) int64 { return s.last() + o.Lateness().Milliseconds() }

// Dead takes the next dead letter.
func (e *Events) Dead(r Record) {
	n, sent := e.bad[string(r.Key)]
	switch {
	case !sent:
		e.r.lost(1, "dead letter of %s: %s", r.at(), r.Header("tm-dead-error"))
	case n > 0:
		e.r.duplicated("dead letter of %s: there is one already", r.at())
	}
	e.bad[string(r.Key)]++
}

// Ended says whether the inputs are all there.
func (e *Events) Ended() bool { return e.ends >= workload.EventEnds }

// Summary says what there was to check: how many records of the input were dropped and refused, and by what.
func (e *Events) Summary() string {
	var passed, copies, old, late int
	for _, ev := range e.ids {
		passed, old, copies = passed+ev.passed, old+ev.refused, copies+ev.copies-ev.passed-ev.refused
		for _, n := range ev.late {
			late += n
		}
	}
	return fmt.Sprintf("%d events, %d copies dropped, %d too old for deduplication, %d refused by windows, %d undecodable, %d panes",
		passed, copies, old, late, len(e.bad), e.panes)
}

// Panes returns how many panes there were.
func (e *Events) Panes() int { return e.panes }

// Now reports what has been found so far.
func (e *Events) Now() *Report {
	out := new(Report)
	out.Add(&e.r)
	return out
}

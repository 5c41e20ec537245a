package check

import (
	"encoding/binary"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/window"
)

// What has to hold of the panes of one window of one user, in their order:
//
//	every mode    indexes 0, 1, 2 without a gap, and so those of the panes that are not early; for a session that has
//	              absorbed others they go on from the highest of those
//	              early panes before the watermark is at the end of the window, then the one on time, then late ones;
//	              a pane is the last one if and only if the watermark has passed the lateness, and nothing follows it
//	              ids and amounts are those of events of this user that belong to this window, none of them twice
//	              with the pane on time everything is there that was not late by the watermark of its own partition
//	accumulating  a pane holds what the one before held, and maybe more
//	discarding    a pane holds nothing that was given out before
//	retracting    a pane after the first is preceded by a retraction of exactly what the one before has shown
//	sessions      accumulating and retracting: an absorbed session that was shown is deleted before the longer one shows,
//	              after its retraction in the second mode, and never comes back; discarding: nothing is taken back, and the
//	              absorbed one never shows again. A session that has shown its last pane is not absorbed. An event in time
//	              is in a pane on time before it is in a late one, if not of this session then of one it has absorbed
//
// What the windows hold in the end is for Done.

// op is one operator.
type op struct {
	workload.EventOp
	index int
	users map[string]*windows
}

// windows are those of one user.
type windows struct {
	all    map[span]*win
	held   map[int64]bool // discarding: ids that were given out
	onTime map[int64]bool // sessions: ids that a pane on time has shown, or did not have to show again
}

// win is one window of one user.
type win struct {
	span
	next, nonEarly int // numbers of the next pane
	shows          bool
	early, onTime  bool
	late, last     bool
	gone, part     bool // absorbed and deleted; absorbed without a word
	taken          bool // retracted, and nothing put in its place yet
	ids            []int64
	maxTime        int64
}

// pane is a record of the topic of panes, taken apart.
type pane struct {
	o    *op
	user string
	span
	what window.Op
	info window.Pane
	bag  workload.Bag
}

// parse takes a record apart. The formats are those of package workload and of the headers of package window.
func (e *Events) parse(r Record) (p pane, err error) {
	n := len(r.Key) - 16
	name, user, ok := strings.Cut(string(r.Key[:max(n, 0)]), "/")
	if !ok {
		return p, errors.New("bad key")
	}
	i := slices.IndexFunc(e.ops, func(o *op) bool { return o.Name == name })
	if i < 0 {
		return p, fmt.Errorf("operator %q", name)
	}
	p.o, p.user = e.ops[i], user
	p.span = span{int64(binary.BigEndian.Uint64(r.Key[n+8:])), int64(binary.BigEndian.Uint64(r.Key[n:])) + 1}
	b, err := window.ParseBoundsHeader(r.Header(window.BoundsHeader))
	if err != nil {
		return p, err
	}
	if (span{b.Start, b.End}) != p.span {
		return p, fmt.Errorf("window %v in the header, %v in the key", b, p.span)
	}
	if h := r.Header(window.OpHeader); h != nil {
		if p.what, err = window.ParseOpHeader(h); err != nil {
			return p, err
		}
	}
	if p.info.Watermark, err = window.ParseWatermarkHeader(r.Header(window.WatermarkHeader)); err != nil {
		return p, err
	}
	if p.what == window.OpDelete {
		if r.Value != nil {
			return p, errors.New("a deleted window has a value")
		}
		return p, nil
	}
	if err := window.ParsePaneHeader(&p.info, r.Header(window.PaneHeader)); err != nil {
		return p, err
	}
	return p, json.Unmarshal(r.Value, &p.bag)
}

// Pane takes the next record of the topic of panes. The events in it must have been shown before as input.
func (e *Events) Pane(r Record) {
	p, err := e.parse(r)
	if err != nil {
		e.r.Wrongly("pane %s: %v", r.at(), err)
		return
	}
	bad := func(format string, args ...any) {
		e.r.Wrongly("%s, user %s, window %v, pane %d at %d@%d: %s",
			p.o.Name, p.user, p.span, p.info.Index, r.Partition, r.Offset, fmt.Sprintf(format, args...))
	}
	ws := p.o.users[p.user]
	if ws == nil {
		ws = &windows{all: make(map[span]*win), held: make(map[int64]bool), onTime: make(map[int64]bool)}
		p.o.users[p.user] = ws
	}
	w := ws.all[p.span]
	if w == nil {
		w = &win{span: p.span}
		if p.o.Kind == workload.Session {
			e.absorb(ws, w, &p, bad)
		}
		ws.all[p.span] = w
	}
	retracting := p.o.Mode == workload.Retracting
	switch {
	case p.what == window.OpRetract:
		e.retract(w, &p, bad)
		return
	case p.what == window.OpDelete:
		e.remove(w, &p, bad)
		return
	case (p.what == window.OpAssert) != retracting:
		bad("operation %q", p.what)
	}
	e.panes++
	if again := e.number(w, &p); again {
		return
	}
	e.order(w, &p, bad)
	if retracting && w.shows != w.taken {
		bad("the one before was shown: %v, and retracted: %v", w.shows, w.taken)
	}
	if !w.shows && !w.last {
		e.windows++
	}
	w.shows, w.taken = true, false
	e.content(ws, w, &p, bad)
	if w.maxTime != r.Time {
		bad("its time is %d, that of its latest event %d", r.Time, w.maxTime)
	}
	switch {
	case p.info.Timing == window.TimingOnTime:
		e.complete(ws, w, &p)
	case p.info.Timing == window.TimingLate && p.o.Kind == workload.Session:
		e.late(ws, w, &p)
	}
	if p.info.Last {
		w.last = true
		e.windows--
	}
}

// absorb prepares the first pane of a session: those it has absorbed lie inside, and its numbers go on from theirs.
func (e *Events) absorb(ws *windows, s *win, p *pane, bad func(string, ...any)) {
	for _, w := range ws.all {
		inside := s.start <= w.start && w.end <= s.end
		switch {
		case w.end <= s.start || s.end <= w.start || !w.shows:
			continue
		case w.last:
			bad("session %v is closed, and overlaps", w.span)
			continue
		case p.o.Mode == workload.Discarding && inside && !w.part:
			w.part = true
			e.windows--
		case !inside || !w.gone && !w.part:
			bad("session %v overlaps", w.span)
		}
		s.next, s.nonEarly, s.maxTime = max(s.next, w.next), max(s.nonEarly, w.nonEarly), max(s.maxTime, w.maxTime)
	}
}

// number checks the index of a pane. It reports whether the pane was there before.
func (e *Events) number(w *win, p *pane) bool {
	where := fmt.Sprintf("%s, user %s, window %v", p.o.Name, p.user, p.span)
	switch i := p.info.Index; {
	case i < w.next:
		e.r.duplicated("%s: pane %d, %d were out", where, i, w.next)
		return true
	case i > w.next:
		e.r.lost(i-w.next, "%s: pane %d, only %d were out", where, i, w.next)
	}
	w.next = p.info.Index + 1
	return false
}

// order checks where a pane stands among those of its window.
func (e *Events) order(w *win, p *pane, bad func(string, ...any)) {
	i := &p.info
	want := -1
	if i.Timing != window.TimingEarly {
		want = w.nonEarly
		w.nonEarly++
	}
	switch {
	case i.NonSpeculative != want:
		bad("number %d of those that are not early, want %d", i.NonSpeculative, want)
	case i.First != (i.Index == 0):
		bad("first: %v", i.First)
	case w.last:
		bad("a pane follows the last one")
	case w.gone:
		bad("a pane of a session that was absorbed")
	case i.Timing == window.TimingEarly && (w.onTime || w.late):
		bad("an early pane after one that was not")
	case i.Timing == window.TimingOnTime && (w.onTime || w.late):
		bad("a pane on time after one that was not early")
	case (i.Timing == window.TimingEarly) != (i.Watermark < w.span.last()):
		bad("%s at watermark %d", i.Timing, i.Watermark)
	case i.Last != (i.Watermark >= p.o.closes(w.span)):
		bad("last: %v, at watermark %d", i.Last, i.Watermark)
	case w.part:
		bad("a pane of a session that is part of a longer one")
	}
	w.early = w.early || i.Timing == window.TimingEarly
	w.onTime = w.onTime || i.Timing == window.TimingOnTime
	w.late = w.late || i.Timing == window.TimingLate
}

// content checks what a pane holds.
func (e *Events) content(ws *windows, w *win, p *pane, bad func(string, ...any)) {
	var sum int64
	ids := slices.Sorted(slices.Values(p.bag.IDs))
	for i, id := range ids {
		ev := e.ids[id]
		if ev == nil || ev.User != p.user || !within(p.o.Kind, ev.Time, w.span) {
			bad("event %d does not belong there", id)
			continue
		}
		if i > 0 && ids[i-1] == id {
			e.r.duplicated("%s, user %s, window %v: event %d was folded in twice", p.o.Name, p.user, w.span, id)
		}
		sum += ev.Amount
		w.maxTime = max(w.maxTime, ev.Time)
	}
	if sum != p.bag.Sum {
		bad("the sum is %d, its events add up to %d", p.bag.Sum, sum)
	}
	if p.o.Mode != workload.Discarding {
		if p.o.Kind == workload.Session && !e.isSession(ids, w.span) {
			bad("%v are not the events of one session", ids)
		}
		if missing := minus(w.ids, ids); len(missing) > 0 {
			e.r.lost(len(missing), "%s, user %s, window %v: events %v are no longer in pane %d", p.o.Name, p.user, w.span, missing, p.info.Index)
		}
		w.ids = ids
		return
	}
	for _, id := range ids {
		if p.o.Kind != workload.Hopping && ws.held[id] || slices.Contains(w.ids, id) {
			e.r.duplicated("%s, user %s, window %v: event %d was given out before", p.o.Name, p.user, w.span, id)
		}
		ws.held[id] = true
	}
	w.ids = slices.Sorted(slices.Values(append(w.ids, ids...)))
}

// isSession says whether events make exactly that session.
func (e *Events) isSession(ids []int64, s span) bool {
	var events []*event
	for _, id := range ids {
		if ev := e.ids[id]; ev != nil {
			events = append(events, ev)
		}
	}
	all := sessionsOf(events)
	return len(all) == 1 && all[s] != nil
}

// minus returns what of the sorted a is not in the sorted b.
func minus(a, b []int64) (out []int64) {
	for _, id := range a {
		if _, ok := slices.BinarySearch(b, id); !ok {
			out = append(out, id)
		}
	}
	return out
}

// complete checks that a pane on time leaves out nothing that was in time.
func (e *Events) complete(ws *windows, w *win, p *pane) {
	for _, ev := range e.between(p.user, w.span) {
		_, there := slices.BinarySearch(w.ids, ev.ID)
		if p.o.Kind == workload.Session {
			// What an absorbed session has given out is not given out again.
			there = there || p.o.Mode == workload.Discarding && ws.held[ev.ID]
			if there {
				ws.onTime[ev.ID] = true
			}
			if !ev.inTime() || !within(p.o.Kind, ev.Time, w.span) {
				continue
			}
		}
		if !there && ev.watermark < w.span.last() {
			e.r.lost(1, "%s, user %s, window %v: event %d was in time and is not in the pane on time", p.o.Name, p.user, w.span, ev.ID)
		}
	}
}

// inTime says whether an event was ahead of the watermark of its own partition: then no session it joins is complete.
func (ev *event) inTime() bool { return ev.watermark < ev.Time }

// late checks that a late pane of a session shows no event for the first time that was in time.
func (e *Events) late(ws *windows, w *win, p *pane) {
	for _, id := range p.bag.IDs {
		if ev := e.ids[id]; ev != nil && ev.inTime() && !ws.onTime[id] {
			e.r.lost(1, "%s, user %s, window %v: event %d was in time and in no pane on time", p.o.Name, p.user, w.span, id)
		}
	}
}

// retract takes a retraction: of exactly what is shown.
func (e *Events) retract(w *win, p *pane, bad func(string, ...any)) {
	ids := slices.Sorted(slices.Values(p.bag.IDs))
	switch {
	case p.o.Mode != workload.Retracting:
		bad("a retraction")
	case !w.shows || w.taken || w.gone || w.last:
		bad("a retraction, with shown %v, retracted %v, absorbed %v, last %v", w.shows, w.taken, w.gone, w.last)
	case !slices.Equal(ids, w.ids) || p.bag.Sum != e.sum(w.ids):
		bad("a retraction of %v, shown was %v", p.bag, w.ids)
	}
	w.taken = true
}

func (e *Events) sum(ids []int64) (sum int64) {
	for _, id := range ids {
		if ev := e.ids[id]; ev != nil {
			sum += ev.Amount
		}
	}
	return sum
}

// remove takes the deletion of a session that was absorbed.
func (e *Events) remove(w *win, p *pane, bad func(string, ...any)) {
	switch {
	case p.o.Kind != workload.Session || p.o.Mode == workload.Discarding:
		bad("a deletion")
	case !w.shows || w.gone || w.last || w.taken != (p.o.Mode == workload.Retracting):
		bad("a deletion, with shown %v, retracted %v, absorbed %v, last %v", w.shows, w.taken, w.gone, w.last)
	}
	if w.shows && !w.gone && !w.last {
		e.windows--
	}
	w.gone, w.taken = true, false
}

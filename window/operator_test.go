package window

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// operator sums integers per window of one key. It does what a caller of the package has to do, and stores rows as
// bytes, so that nothing survives between two events but what is encoded.
type operator struct {
	t         testing.TB
	c         *Config
	w, now    int64
	rows      map[Bounds]storedRow
	deadlines map[Bounds]deadline
	out       []string
	eager     bool // stores the state of a window that fired on time, which is not needed
}

type storedRow struct {
	state          string
	maxTime        int64
	value, emitted int64
}

type deadline struct {
	arm Arm
	at  int64
}

// openRow is a row in the hands of the operator.
type openRow struct {
	State
	value, emitted int64
}

func newOperator(t testing.TB, c *Config) *operator {
	return &operator{t: t, c: c, w: minTime, rows: map[Bounds]storedRow{}, deadlines: map[Bounds]deadline{}}
}

func encodeInt(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func (o *operator) load(b Bounds) *openRow {
	row, ok := o.rows[b]
	if !ok {
		return &openRow{}
	}
	s, rest, err := ParseState([]byte(row.state))
	if err != nil || len(rest) != 0 {
		o.t.Fatalf("state %x: %v", row.state, err)
	}
	s.MaxTime = row.maxTime
	return &openRow{s, row.value, row.emitted}
}

func (o *operator) store(b Bounds, r *openRow) {
	enc := r.Append(nil)
	s, _, err := ParseState(enc)
	if s.MaxTime = r.MaxTime; err != nil || s != r.State {
		o.t.Fatalf("stored %+v, read %+v (%v)", r.State, s, err)
	}
	o.rows[b] = storedRow{string(enc), r.MaxTime, r.value, r.emitted}
}

func (o *operator) settled(r *openRow) {
	switch o.c.Mode {
	case ModeDiscarding:
		r.value = 0
	case ModeRetracting:
		r.emitted = r.value
	}
	if o.c.NeedsHash() {
		r.Hash = Hash(encodeInt(r.value))
	}
}

func (o *operator) fire(b Bounds, r *openRow, d Decision) {
	var h uint64
	if o.c.NeedsHash() {
		h = Hash(encodeInt(r.value))
	}
	p, ok := o.c.Fire(&r.State, b, d, o.w, h)
	if !ok {
		return
	}
	if d.Retract {
		o.out = append(o.out, fmt.Sprintf("-%v=%d", b, r.emitted))
	}
	o.out = append(o.out, paneText(p, r.value))
	switch o.c.Mode {
	case ModeDiscarding:
		r.value = 0
	case ModeRetracting:
		r.emitted = r.value
	}
}

func paneText(p Pane, v int64) string {
	s := fmt.Sprintf("%v=%d %v#%d/%d @%d", p.Bounds, v, p.Timing, p.Index, p.NonSpeculative, p.MaxTime)
	if p.First {
		s += " first"
	}
	if p.Last {
		s += " last"
	}
	return s
}

func (o *operator) side(reason Reason, b Bounds, ts int64) {
	o.out = append(o.out, fmt.Sprintf("side %v %v %d", reason, b, ts))
}

func (o *operator) add(v, ts int64) {
	if o.c.Window.Kind() == KindSession {
		o.addSession(v, ts)
		return
	}
	for _, b := range o.c.Window.Assign(nil, ts) {
		o.addTo(b, o.load(b), v, ts)
	}
}

func (o *operator) addTo(b Bounds, r *openRow, v, ts int64) {
	d := o.c.Add(&r.State, b, o.w, ts)
	if d.Refuse != Accepted {
		o.side(d.Refuse, b, ts)
		return
	}
	if d.Settled {
		o.settled(r)
	}
	r.value += v
	if d.Fire {
		o.fire(b, r, d)
	}
	if d.Arm != ArmNone {
		o.deadlines[b] = deadline{d.Arm, o.c.Deadline(d.Arm, o.now)}
	}
	o.store(b, r)
}

func (o *operator) addSession(v, ts int64) {
	b := o.c.Window.Proto(ts)
	var old []Bounds
	for r := range o.rows {
		if r.Intersects(o.c.Window.Proto(ts)) {
			old = append(old, r)
			b = b.Union(r)
		}
	}
	slices.SortFunc(old, byEnd)
	reason := o.c.Refuses(b, o.w)
	for _, r := range old {
		if o.c.Expired(r, o.w) {
			reason = ReasonExpired
		}
	}
	if o.c.Forgets(o.c.Window.Proto(ts), o.w) {
		reason = ReasonExpired
	}
	if reason != Accepted {
		o.side(reason, b, ts)
		return
	}
	if len(old) == 1 && old[0] == b {
		o.addTo(b, o.load(b), v, ts)
		return
	}
	into := &openRow{}
	for _, r := range old {
		from := o.load(r)
		a := o.c.Merge(&into.State, b, &from.State, r, o.w)
		if a.Settled {
			o.settled(from)
		}
		if a.Emitted {
			o.out = append(o.out, o.absorbed(r, from))
		}
		into.value += from.value
		delete(o.rows, r)
		delete(o.deadlines, r)
	}
	o.addTo(b, into, v, ts)
}

// absorbed is what downstream is told about a session that is no longer one.
func (o *operator) absorbed(b Bounds, r *openRow) string {
	if o.c.Mode == ModeRetracting {
		return fmt.Sprintf("-%v=%d", b, r.emitted)
	}
	return fmt.Sprintf("delete %v", b)
}

func byEnd(a, b Bounds) int {
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start))
}

func (o *operator) sorted() []Bounds {
	var bs []Bounds
	for b := range o.rows {
		bs = append(bs, b)
	}
	slices.SortFunc(bs, byEnd)
	return bs
}

func (o *operator) advance(w int64) {
	prev := o.w
	if w <= prev {
		return
	}
	o.w = w
	for _, b := range o.sorted() {
		r := o.load(b)
		d := o.c.OnWatermark(&r.State, b, prev, w)
		if d.Settled {
			o.settled(r)
		}
		if d.Fire {
			o.fire(b, r, d)
		}
		if o.eager && !d.Close {
			o.store(b, r)
		}
		if d.Dropped > 0 {
			o.out = append(o.out, fmt.Sprintf("dropped %v %d", b, d.Dropped))
		}
		if w >= o.c.Forgotten(b) {
			delete(o.rows, b)
			delete(o.deadlines, b)
		}
	}
}

func (o *operator) clock(now int64) {
	o.now = max(o.now, now)
	for _, b := range o.sorted() {
		dl, ok := o.deadlines[b]
		if !ok || dl.at > o.now {
			continue
		}
		delete(o.deadlines, b)
		r := o.load(b)
		d := o.c.OnDeadline(&r.State, b, o.w, dl.arm)
		if d.Settled {
			o.settled(r)
		}
		if d.Fire {
			o.fire(b, r, d)
			o.store(b, r)
		}
	}
}

// crash forgets what is not stored.
func (o *operator) crash() {
	clear(o.deadlines)
	for _, b := range o.sorted() {
		if arm := o.c.Rearm(o.load(b).State, b, o.w); arm != ArmNone {
			o.deadlines[b] = deadline{arm, o.c.Deadline(arm, o.now)}
		}
	}
}

package check_test

import (
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/window"
)

// recording is a run of the workload events: what went in and what came out.
type recording struct {
	in, once, panes, late, dead []check.Record
}

func (r *recording) clone() *recording {
	return &recording{slices.Clone(r.in), slices.Clone(r.once), slices.Clone(r.panes), slices.Clone(r.late), slices.Clone(r.dead)}
}

func (r *recording) judge() *check.Report {
	e := check.NewEvents()
	for _, x := range r.in {
		e.Input(x)
	}
	for _, x := range r.once {
		e.Once(x)
	}
	for _, x := range r.panes {
		e.Pane(x)
	}
	for _, x := range r.late {
		e.Late(x)
	}
	for _, x := range r.dead {
		e.Dead(x)
	}
	return e.Done()
}

// play runs the workload in the test driver, with crashes and rebalances at random.
func play(t *testing.T, seed uint64, n int) *recording {
	t.Helper()
	const partitions = 4
	rng := rand.New(rand.NewPCG(seed, 4))
	topics := workload.Topics{}.WithEvents("t", "t")
	d := tidemarktest.New(t, workload.Topology("t", topics), tidemarktest.Options{
		Partitions: partitions, Instances: 2, DeadLetter: true, Start: workload.EventStart(),
	})
	in := tidemarktest.Input[[]byte, []byte](d, topics.EventsIn)
	gen := workload.NewEventGenerator(topics.EventsIn, 2*time.Minute, rng)
	var r recording
	next := make([]int64, partitions)
	send := func(x workload.Input) {
		p := rng.IntN(partitions)
		if strings.HasPrefix(string(x.Key), "end") {
			p = len(r.in) % partitions
		}
		if err := in.SendBytes(x.Key, x.Value, tidemarktest.To(p)); err != nil {
			t.Fatal(err)
		}
		r.in = append(r.in, check.Record{Partition: int32(p), Offset: next[p], Key: x.Key, Value: x.Value})
		next[p]++
	}
	send(workload.Input{Topic: topics.EventsIn, Key: []byte("bad0"), Value: []byte("{")})
	for range n {
		x, err := gen.Next()
		if err != nil {
			t.Fatal(err)
		}
		send(x)
		switch draw := rng.IntN(200); {
		case draw < 8:
			d.Commit()
		case draw < 12:
			d.Advance(time.Duration(rng.IntN(900)) * time.Millisecond)
		case draw == 12:
			d.RestoreBy(tidemarktest.Restore(rng.IntN(2)))
			d.Crash(rng.IntN(2))
		case draw == 13:
			d.Rebalance()
		}
	}
	ends, err := gen.Ends()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ends {
		send(x)
	}
	d.Commit()
	d.Advance(time.Second)
	r.once = records(d, topics.OnceOut)
	r.panes = records(d, topics.PanesOut)
	for _, l := range d.Late() {
		text := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		x := check.Record{Key: l.Key, Value: l.Value, Headers: []check.Header{
			{Key: "tm-late-op", Value: []byte(l.Operator)}, {Key: "tm-late-reason", Value: []byte(l.Reason.String())},
			{Key: "tm-late-wm", Value: text(l.Watermark)},
		}}
		if l.Windowed {
			x.Headers = append(x.Headers, check.Header{Key: "tm-late-win", Value: window.AppendBoundsHeader(nil, l.Window)})
		}
		r.late = append(r.late, x)
	}
	for _, l := range d.DeadLetters() {
		r.dead = append(r.dead, check.Record{Key: l.Key, Value: l.Value})
	}
	return &r
}

// records reads an output topic.
func records(d *tidemarktest.Driver, topic string) (out []check.Record) {
	for _, r := range tidemarktest.Output[[]byte, []byte](d, topic).ReadAll() {
		x := check.Record{Partition: int32(r.Partition), Offset: r.Offset, Time: r.Time.UnixMilli(), Key: r.Key, Value: r.Value}
		if r.Null {
			x.Value = nil
		}
		if r.Pane != nil { // whose window the driver has taken off the key
			x.Key = binary.BigEndian.AppendUint64(slices.Clone(r.Key), uint64(r.Pane.Bounds.Last()))
			x.Key = binary.BigEndian.AppendUint64(x.Key, uint64(r.Pane.Start))
		}
		for _, h := range r.Headers {
			x.Headers = append(x.Headers, check.Header(h))
		}
		out = append(out, x)
	}
	return out
}

// The library in the test driver passes, and meets everything the checker looks at.
func TestEvents(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(3) {
		r := play(t, seed+1, 800)
		if report := r.judge(); !report.OK() {
			t.Errorf("seed %d: %s\n%s", seed+1, report, report.Explain())
		}
		for i := range r.panes {
			p := paneOf(&r.panes[i])
			seen[p.kind()+p.info.Timing.String()+p.op.String()]++
			if p.info.Last {
				seen[p.kind()+"last"]++
			}
		}
		if len(r.late) == 0 || len(r.dead) == 0 || len(r.once) >= len(r.in)-len(r.dead)-workload.EventEnds {
			t.Errorf("seed %d: %d late records, %d dead letters, %d of %d inputs passed", seed+1, len(r.late), len(r.dead), len(r.once), len(r.in))
		}
	}
	for _, o := range workload.EventOps() {
		for _, what := range []string{"EARLY", "ON_TIME", "LATE"} {
			if o.Kind == workload.Sliced && what != "ON_TIME" {
				continue
			}
			op := window.Op(0)
			if o.Mode == workload.Retracting {
				op = window.OpAssert
			}
			if seen[o.Name+what+op.String()] == 0 {
				t.Errorf("no %s pane of %s", what, o.Name)
			}
		}
		if seen[o.Name+"last"] == 0 {
			t.Errorf("no last pane of %s", o.Name)
		}
	}
	for _, what := range []string{"session-accumulatingEARLY-D", "session-retractingEARLY-D"} {
		if seen[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// edited is a pane that can be changed.
type edited struct {
	r    *check.Record
	op   window.Op
	info window.Pane
	bag  workload.Bag
}

func paneOf(r *check.Record) edited {
	p := edited{r: r}
	p.op, _ = window.ParseOpHeader(r.Header(window.OpHeader))
	_ = window.ParsePaneHeader(&p.info, r.Header(window.PaneHeader))
	p.info.Bounds, _ = window.ParseBoundsHeader(r.Header(window.BoundsHeader))
	p.info.Watermark, _ = window.ParseWatermarkHeader(r.Header(window.WatermarkHeader))
	_ = json.Unmarshal(r.Value, &p.bag)
	return p
}

func (p *edited) kind() string { return strings.SplitN(string(p.r.Key), "/", 2)[0] }

func (p *edited) put() {
	p.r.Value, _ = json.Marshal(p.bag)
	p.r.Headers = slices.Clone(p.r.Headers)
	for i := range p.r.Headers {
		switch p.r.Headers[i].Key {
		case window.PaneHeader:
			p.r.Headers[i].Value = window.AppendPaneHeader(nil, &p.info)
		case window.WatermarkHeader:
			p.r.Headers[i].Value = window.AppendWatermarkHeader(nil, p.info.Watermark)
		}
	}
}

// find returns the index of a pane of an operator.
func (r *recording) find(t *testing.T, operator string, is func(p *edited) bool) int {
	t.Helper()
	for i := range r.panes {
		if p := paneOf(&r.panes[i]); p.kind() == operator && is(&p) {
			return i
		}
	}
	t.Fatalf("no such pane of %s", operator)
	return -1
}

// drop takes a pane away and numbers those behind it anew, so that no gap betrays it.
func (r *recording) drop(i int) {
	gone, key := paneOf(&r.panes[i]), string(r.panes[i].Key)
	r.panes = slices.Delete(r.panes, i, i+1)
	for j := i; j < len(r.panes); j++ {
		if string(r.panes[j].Key) != key {
			continue
		}
		p := paneOf(&r.panes[j])
		p.info.Index--
		p.info.First = p.info.Index == 0
		if gone.info.Timing != window.TimingEarly && p.info.Timing != window.TimingEarly {
			p.info.NonSpeculative--
		}
		p.put()
	}
}

func TestEventsNotices(t *testing.T) {
	clean := play(t, 11, 800)
	if r := clean.judge(); !r.OK() {
		t.Fatalf("%s\n%s", r, r.Explain())
	}
	timing := func(want window.Timing) func(*edited) bool {
		return func(p *edited) bool { return p.info.Timing == want && p.op != window.OpRetract && !p.info.Last }
	}
	last := func(p *edited) bool { return p.info.Last && p.op != window.OpRetract }
	for _, c := range []struct {
		name string
		edit func(t *testing.T, r *recording)
		want string // in the details
	}{
		{"a pane missing", func(t *testing.T, r *recording) {
			i := r.find(t, "tumbling-accumulating", timing(window.TimingEarly))
			r.panes = slices.Delete(r.panes, i, i+1)
		}, "only 0 were out"},
		{"a pane twice", func(t *testing.T, r *recording) {
			i := r.find(t, "hopping-accumulating", timing(window.TimingOnTime))
			r.panes = slices.Insert(r.panes, i, r.panes[i])
		}, "duplicated: hopping-accumulating"},
		{"the pane on time missing", func(t *testing.T, r *recording) {
			r.drop(r.find(t, "calendar-accumulating", timing(window.TimingOnTime)))
		}, "has no pane on time"},
		{"the pane on time missing, of a session", func(t *testing.T, r *recording) {
			early := make(map[string]bool)
			r.drop(r.find(t, "session-accumulating", func(p *edited) bool {
				early[string(p.r.Key)] = early[string(p.r.Key)] || p.info.Timing == window.TimingEarly
				return p.info.Timing == window.TimingOnTime && !p.info.Last && early[string(p.r.Key)]
			}))
		}, "no pane on time"},
		{"two panes on time", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "tumbling-discarding", timing(window.TimingLate))])
			p.info.Timing = window.TimingOnTime
			p.put()
		}, "a pane on time after one"},
		{"an early pane too late", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "tumbling-accumulating", timing(window.TimingEarly))])
			p.info.Watermark = p.info.End
			p.put()
		}, "EARLY at watermark"},
		{"the last pane missing", func(t *testing.T, r *recording) {
			r.drop(r.find(t, "hopping-discarding", last))
		}, "last pane false"},
		{"a pane after the last", func(t *testing.T, r *recording) {
			i := r.find(t, "calendar-discarding", last)
			r.panes = slices.Insert(r.panes, i+1, r.panes[i])
			p := paneOf(&r.panes[i+1])
			p.info.Index++
			p.info.NonSpeculative++
			p.info.First, p.info.Timing = false, window.TimingLate
			p.bag = workload.Bag{}
			p.put()
		}, "a pane follows the last one"},
		{"a wrong sum", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "hopping-accumulating", last)])
			p.bag.Sum++
			p.put()
		}, "add up to"},
		{"an event missing in the end", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "session-retracting", func(p *edited) bool {
				return p.info.Last && p.op != window.OpRetract && len(p.bag.IDs) > 2
			})])
			r.without(&p, 1)
		}, "is in no window and was not refused"},
		{"an event missing that was in time", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "tumbling-accumulating", func(p *edited) bool {
				return p.info.Timing == window.TimingOnTime && p.info.Index == 0
			})])
			r.without(&p, 0)
		}, "was in time and is not in the pane on time"},
		{"an event of elsewhere", func(t *testing.T, r *recording) {
			a := paneOf(&r.panes[r.find(t, "tumbling-accumulating", last)])
			b := paneOf(&r.panes[r.find(t, "tumbling-accumulating", func(p *edited) bool {
				return p.info.Last && p.info.Bounds != a.info.Bounds
			})])
			a.bag = a.bag.Merge(b.bag)
			a.put()
		}, "does not belong there"},
		{"an event twice in a window", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "tumbling-discarding", timing(window.TimingOnTime))])
			p.bag = p.bag.Merge(workload.Bag{Sum: r.amount(p.bag.IDs[0]), IDs: p.bag.IDs[:1]})
			p.put()
		}, "folded in twice"},
		{"an event given out twice", func(t *testing.T, r *recording) {
			first := make(map[string]workload.Bag) // by key
			b := paneOf(&r.panes[r.find(t, "session-discarding", func(p *edited) bool {
				first[string(p.r.Key)] = first[string(p.r.Key)].Merge(p.bag)
				return p.info.Index > 0 && len(p.bag.IDs) == 0 && len(first[string(p.r.Key)].IDs) > 0
			})])
			b.bag = first[string(b.r.Key)]
			b.put()
		}, "was given out before"},
		{"a difference missing", func(t *testing.T, r *recording) {
			r.drop(r.find(t, "hopping-discarding", timing(window.TimingEarly)))
		}, "in time and is not in the pane on time"},
		{"a retraction missing", func(t *testing.T, r *recording) {
			i := r.find(t, "tumbling-retracting", func(p *edited) bool { return p.op == window.OpRetract })
			r.panes = slices.Delete(r.panes, i, i+1)
		}, "and retracted: false"},
		{"a retraction of another value", func(t *testing.T, r *recording) {
			p := paneOf(&r.panes[r.find(t, "calendar-retracting", func(p *edited) bool { return p.op == window.OpRetract })])
			r.without(&p, 0)
		}, "a retraction of"},
		{"an absorbed session kept", func(t *testing.T, r *recording) {
			i := r.find(t, "session-accumulating", func(p *edited) bool { return p.op == window.OpDelete })
			r.panes = slices.Delete(r.panes, i, i+1)
		}, "overlaps"},
		{"a session deleted and not replaced", func(t *testing.T, r *recording) {
			i := r.find(t, "session-accumulating", func(p *edited) bool { return p.op == window.OpDelete })
			d := r.panes[i]
			p := paneOf(&r.panes[r.find(t, "session-accumulating", last)])
			d.Key = p.r.Key
			d.Headers = slices.Clone(d.Headers)
			for j := range d.Headers {
				if d.Headers[j].Key == window.BoundsHeader {
					d.Headers[j].Value = p.r.Header(window.BoundsHeader)
				}
			}
			r.panes = append(r.panes, d)
		}, "a deletion, with shown true"},
		{"a late record lost", func(t *testing.T, r *recording) {
			i := r.refusal(t, "calendar-retracting")
			r.late = slices.Delete(r.late, i, i+1)
		}, "is in no window and was not refused"},
		{"a late record twice", func(t *testing.T, r *recording) {
			r.late = append(r.late, r.late[r.refusal(t, "session-accumulating")])
		}, "is refused by session-accumulating 2 times"},
		{"refused and counted", func(t *testing.T, r *recording) {
			l := r.late[r.refusal(t, "tumbling-accumulating")]
			l.Value, l.Key = r.once[0].Value, r.once[0].Key
			r.late = append(r.late, l)
		}, "was refused and is in windows"},
		{"refused by one mode only", func(t *testing.T, r *recording) {
			i := r.refusal(t, "hopping-discarding")
			r.late = slices.Delete(r.late, i, i+1)
		}, "hopping-accumulating and"},
		{"an id passes twice", func(t *testing.T, r *recording) {
			r.once = append(r.once, r.once[7])
		}, "has passed deduplication 2 times"},
		{"an id never passes", func(t *testing.T, r *recording) {
			r.once = slices.Delete(r.once, 7, 8)
		}, "never passed"},
		{"a record of nothing", func(t *testing.T, r *recording) {
			r.once[3].Value = []byte(`{"id":999999,"user":"u1"}`)
		}, "was never sent"},
		{"a dead letter lost", func(t *testing.T, r *recording) {
			r.dead = r.dead[1:]
		}, "has no dead letter"},
		{"a dead letter twice", func(t *testing.T, r *recording) {
			r.dead = append(r.dead, r.dead[0])
		}, "there is one already"},
		{"a good record among the dead letters", func(t *testing.T, r *recording) {
			r.dead = append(r.dead, r.in[1])
		}, "lost 1: dead letter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := clean.clone()
			c.edit(t, r)
			report := r.judge()
			if report.OK() || !strings.Contains(report.Explain(), c.want) {
				t.Errorf("%s, and not: %s\n%s", report, c.want, report.Explain())
			}
		})
	}
}

// amount returns that of an event.
func (r *recording) amount(id int64) int64 {
	for _, x := range r.once {
		var e workload.Event
		if _ = json.Unmarshal(x.Value, &e); e.ID == id {
			return e.Amount
		}
	}
	panic(fmt.Sprint("no event ", id))
}

// without takes an event out of a pane, and its amount out of the sum.
func (r *recording) without(p *edited, i int) {
	p.bag.Sum -= r.amount(p.bag.IDs[i])
	p.bag.IDs = slices.Delete(p.bag.IDs, i, i+1)
	p.put()
}

// refusal returns the index of a late record of an operator.
func (r *recording) refusal(t *testing.T, operator string) int {
	t.Helper()
	i := slices.IndexFunc(r.late, func(x check.Record) bool { return string(x.Header("tm-late-op")) == operator })
	if i < 0 {
		t.Fatalf("%s has refused nothing", operator)
	}
	return i
}

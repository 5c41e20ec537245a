package topology_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
)

type (
	emitter = topology.Emitter[string, string]
	message = topology.Record[string, string]
	timer   = topology.Timer[string]
)

// timed is a processor of functions.
type timed struct {
	process func(out emitter, r message) error
	onTimer func(out emitter, t timer) error
	onTick  func(out emitter, t topology.Tick) error
}

func (p timed) Process(out emitter, r message) error                     { return p.process(out, r) }
func (p timed) OnTimer(out emitter, t timer) error                       { return p.onTimer(out, t) }
func (p timed) OnTick(out emitter, t topology.Tick) error                { return p.onTick(out, t) }
func (p timed) make() topology.Processor[string, string, string, string] { return p }

// command takes "verb tag time" apart.
func command(v string) (verb, tag string, at int64) {
	f := append(strings.Fields(v), "", "", "")
	at, _ = strconv.ParseInt(f[2], 10, 64)
	return f[0], f[1], at
}

// setting is a processor whose records set and delete timers; a timer emits its tag and may set another one.
func setting(timers *topology.TimerStore[string]) timed {
	set := func(s processor.Scoped, v string) error {
		switch verb, tag, at := command(v); verb {
		case "set":
			return timers.Set(s, tag, at)
		case "del":
			return timers.Delete(s, tag)
		}
		return nil
	}
	return timed{
		process: func(out emitter, r message) error {
			if r.Value == "get" {
				at, ok, err := timers.Get(out, "a")
				out.Emit(r.Key, fmt.Sprint(at, ok))
				return err
			}
			return set(out, r.Value)
		},
		onTimer: func(out emitter, t timer) error {
			out.Emit(t.Key, fmt.Sprintf("%s %d %v", t.Tag, t.Time, t.Domain))
			if verb, rest, ok := strings.Cut(t.Tag, ":"); ok { // "set:tag:time"
				return set(out, verb+" "+strings.ReplaceAll(rest, ":", " "))
			}
			return nil
		},
	}
}

// withTimers is a topology of that processor. Its watermark is 1 ms behind the highest time.
func withTimers(timers *topology.TimerStore[string]) *topology.Topology {
	top := topology.New("t")
	top.Stream[string, string]("in").ProcessWith("p", setting(timers).make, timers).To("out")
	return top
}

// F-TIMER-ONCE: timers are neither skipped nor run twice, and a timer that is set while another one fires runs at once if
// it is due; key bytes break ties.
func TestFTimerOnce(t *testing.T) {
	d := start(t, withTimers(topology.Timers[string]("t")))
	d.feeds(t, "in", rec(0, "k", "set set:c:5 10"), rec(0, "k", "set b 20"), rec(0, "k\x00", "set e 20"), rec(0, "j", "set d 20"),
		rec(0, "k", "set a 20"), rec(0, "k", "set late 21"), rec(21, "k", ""))
	d.expect(t, "out@10 k=set:c:5 10 event time", "out@5 k=c 5 event time", "out@20 j=d 20 event time",
		"out@20 k=a 20 event time", "out@20 k=b 20 event time", "out@20 k\x00=e 20 event time")
	d.feeds(t, "in", rec(22, "k", ""), rec(30, "k", ""))
	d.expect(t, "out@21 k=late 21 event time")
}

func TestTimersAreMovedAndDeleted(t *testing.T) {
	d := start(t, withTimers(topology.Timers[string]("t")))
	d.feeds(t, "in", rec(0, "k", "set a 10"), rec(0, "k", "get"), rec(0, "j", "get"), rec(0, "k", "set a 5"), rec(0, "k", "set b 7"),
		rec(0, "k", "del b"), rec(0, "k", "del none"), rec(20, "k", "get"), rec(20, "k", "get"))
	d.expect(t, "out@0 k=10 true", "out@0 j=0 false", "out@20 k=5 true", "out@5 k=a 5 event time", "out@20 k=0 false")
	// What is set behind the watermark fires before the next record.
	d.feeds(t, "in", rec(20, "k", "set a 3"))
	d.expect(t, "out@3 k=a 3 event time")
	wantError(t, d.feed("in", rec(20, "null", "set a 3")), "p", processor.StageNullKey, "null")
	if n := d.counters("p").Timers; n != 2 {
		t.Errorf("%d timers counted", n)
	}
}

// A commit between a record and what it makes due: both are done once.
func TestTimersAcrossACommit(t *testing.T) {
	for _, how := range []string{"abort", "restore"} {
		d := start(t, withTimers(topology.Timers[string]("t")))
		dt := d.tasks["t"]
		logs := map[string]changelog{}
		for _, v := range []string{"set a 1", "set b 2", "set c 3", "set d 4", "set e 5", "set f 6"} {
			d.feeds(t, "in", rec(0, "k", v))
		}
		r := rec(100, "k", "set behind -5")
		if err := dt.task.Process(0, &r); err != nil {
			t.Fatal(err)
		}
		if done, err := dt.task.Advance(3); done || err != nil {
			t.Fatal(done, err)
		}
		d.commitTo(t, logs)
		d.expect(t, "out@-5 k=behind -5 event time", "out@1 k=a 1 event time", "out@2 k=b 2 event time")
		if done, err := dt.task.Advance(2); done || err != nil {
			t.Fatal(done, err)
		}
		if how == "abort" {
			dt.state.Rollback()
		}
		d.out = nil
		task := dt.task
		if how == "restore" {
			d.restore(t, logs) // which advances
		} else if err := errors.Join(task.Close(), dt.build(), dt.advance()); err != nil {
			t.Fatal(err)
		}
		if how == "abort" {
			d.expect(t, "out@3 k=c 3 event time", "out@4 k=d 4 event time", "out@5 k=e 5 event time", "out@6 k=f 6 event time")
		}
		d.out = nil
		d.feeds(t, "in", rec(200, "k", "get"))
		d.expect(t, "out@200 k=0 false")
	}
}

// F-PUNCT-META: what a timer emits has its time and no headers, and siblings do not see what one of them adds.
func TestFPunctMeta(t *testing.T) {
	timers := topology.Timers[string]("t")
	p := setting(timers)
	fire := p.onTimer
	p.onTimer = func(out emitter, tm timer) error {
		if len(tm.Headers()) != 0 || tm.Timestamp() != 10 || string(tm.KeyBytes()) != "k" || tm.Offset() != -1 {
			t.Errorf("headers %v, time %d, key %q, offset %d", tm.Headers(), tm.Timestamp(), tm.KeyBytes(), tm.Offset())
		}
		return fire(out, tm)
	}
	top := topology.New("t")
	s := top.Stream[string, string]("in").ProcessWith("p", p.make, timers)
	s.TryMap(func(c *topology.Context, _, v string) (string, error) { c.AddHeader("b", nil); return v, nil }).To("child")
	s.To("sibling")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "set a 10"), rec(11, "j", "x", processor.Header{Key: "a"}))
	d.expect(t, "child@10 k=a 10 event time b:null", "sibling@10 k=a 10 event time")
}

// F-PUNCT-GAP: a wake runs a periodic callback once, the grid stays, missed runs are counted.
func TestFPunctGap(t *testing.T) {
	top := topology.New("t")
	p := timed{
		process: func(emitter, message) error { return nil },
		onTick: func(out emitter, tick topology.Tick) error {
			out.Emit("tick", fmt.Sprint(tick.Time, " ", tick.Due, " ", tick.Missed))
			return nil
		},
	}
	top.Stream[string, string]("in").ProcessWith("p", p.make, topology.Every(10*time.Second)).To("out")
	d := start(t, top)
	for _, now := range []int64{0, 9_999, 10_000, 10_001, 20_400, 58_000, 59_999, 60_000} {
		d.tick(t, now)
	}
	d.expect(t, "out@10000 tick=10000 10000 0", "out@20400 tick=20400 20000 0", "out@58000 tick=58000 30000 2", "out@60000 tick=60000 60000 0")
	if n := d.counters("p").MissedTicks; n != 2 {
		t.Errorf("%d missed", n)
	}
	if next := d.tasks["in"].task.NextTick(); next != 70_000 {
		t.Errorf("next at %d", next)
	}
}

// F-CLOCK-BACK: a clock that is set back repeats nothing and makes nothing fire early.
func TestFClockBack(t *testing.T) {
	timers := topology.ProcessingTimers[string]("t")
	p := setting(timers)
	p.onTick = func(out emitter, tick topology.Tick) error {
		out.Emit("tick", fmt.Sprint(tick.Due))
		return nil
	}
	top := topology.New("t")
	top.Stream[string, string]("in").ProcessWith("p", p.make, timers, topology.Every(10*time.Millisecond)).To("out")
	d := start(t, top)
	d.tasks["t"].task.Start(95)
	d.feeds(t, "in", rec(1, "k", "set a 110"))
	for _, now := range []int64{100, 105, 70, 80, 130} {
		d.tick(t, now)
	}
	d.expect(t, "out@100 tick=100", "out@110 k=a 110 processing time", "out@130 tick=110")
}

// F-TIMER-CLOCK: on a host whose clock is behind, the next run comes within one interval, and no burst.
func TestFTimerClock(t *testing.T) {
	top := topology.New("t")
	p := timed{process: func(emitter, message) error { return nil }, onTick: func(out emitter, tick topology.Tick) error {
		out.Emit("tick", fmt.Sprint(tick.Missed))
		return nil
	}}
	top.Stream[string, string]("in").ProcessWith("p", p.make, topology.Every(time.Minute)).To("out")
	d := start(t, top)
	const second = 1000
	d.tasks["in"].task.Start(0)
	d.tick(t, 650*second)
	d.commits(t)
	d.expect(t, "out@650000 tick=9")
	dt := d.tasks["in"]
	dt.now = 620 * second // the clock of the other host
	if err := errors.Join(dt.task.Close(), dt.build()); err != nil {
		t.Fatal(err)
	}
	for now := int64(620); now <= 720; now += 10 {
		d.tick(t, now*second)
	}
	d.expect(t, "out@660000 tick=0", "out@720000 tick=0")
}

// Timers of processing time that came due while the app was down fire once, in their order, when it runs again.
func TestProcessingTimersAfterARestart(t *testing.T) {
	d := start(t, withTimers(topology.ProcessingTimers[string]("t")))
	logs := map[string]changelog{}
	d.tick(t, 0)
	d.feeds(t, "in", rec(1, "k", "set b 30"), rec(1, "k", "set a 20"), rec(1, "k", "set c 20"), rec(1, "k", "set d 99"))
	if next := d.tasks["t"].task.NextTick(); next != 20 {
		t.Errorf("next tick at %d", next)
	}
	d.commitTo(t, logs)
	d.restore(t, logs)
	d.tick(t, 50)
	d.expect(t, "out@20 k=a 20 processing time", "out@20 k=c 20 processing time", "out@30 k=b 30 processing time")
	d.abort(t)
	d.tick(t, 60)
	d.expect(t, "out@20 k=a 20 processing time", "out@20 k=c 20 processing time", "out@30 k=b 30 processing time")
	if next := d.tasks["t"].task.NextTick(); next != 99 {
		t.Errorf("next tick at %d", next)
	}
	d.tick(t, 70)
	d.expect(t)
}

func TestTimersThatSetEachOtherWithoutEnd(t *testing.T) {
	timers := topology.Timers[string]("t")
	p := setting(timers)
	p.onTimer = func(out emitter, tm timer) error { _ = timers.Set(out, tm.Tag, tm.Time); return nil }
	top := topology.New("t")
	top.Stream[string, string]("in").ProcessWith("p", p.make, timers).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(0, "k", "set a 10"))
	err := d.feed("in", rec(20, "k", ""))
	wantError(t, err, "p", processor.StageUser, "without end")
	if !errors.Is(err, processor.ErrTimerLoop) {
		t.Error("not ErrTimerLoop")
	}
}

func TestTimersAgainstATwin(t *testing.T) {
	type due struct {
		key, tag string
	}
	type twin struct {
		timers map[due]int64
		w      int64
	}
	clone := func(w *twin) *twin { return &twin{maps.Clone(w.timers), w.w} }
	underFaults(t, withTimers(topology.Timers[string]("t")), 3000,
		func() *twin { return &twin{map[due]int64{}, watermark.Unknown} }, clone,
		func(d *driver, rng *rand.Rand, w *twin) {
			at := max(w.w, 0) + int64(rng.IntN(10))
			key, tag := fmt.Sprint(strings.Repeat("k", rng.IntN(3)), rng.IntN(3)), fmt.Sprint(rng.IntN(3))
			to := at + int64(rng.IntN(60)) - 20
			if rng.IntN(4) == 0 {
				tag = fmt.Sprintf("set:x%d:%d", rng.IntN(2), to+int64(rng.IntN(20))-10)
			}
			verb := "set"
			if rng.IntN(4) == 0 {
				verb = "del"
			}
			d.out = nil
			d.feeds(t, "in", rec(at, key, fmt.Sprintf("%s %s %d", verb, tag, to)))
			if verb == "set" {
				w.timers[due{key, tag}] = to
			} else {
				delete(w.timers, due{key, tag})
			}
			w.w = max(w.w, at-1)
			var want []string
			for {
				var first *due
				for k := range w.timers {
					if w.timers[k] <= w.w && (first == nil || cmp.Or(cmp.Compare(w.timers[k], w.timers[*first]),
						cmp.Compare(k.key, first.key), cmp.Compare(k.tag, first.tag)) < 0) {
						first = &k
					}
				}
				if first == nil {
					break
				}
				at := w.timers[*first]
				delete(w.timers, *first)
				want = append(want, fmt.Sprintf("out@%d %s=%s %d event time", at, first.key, first.tag, at))
				if verb, rest, ok := strings.Cut(first.tag, ":"); ok {
					_, tag, to := command(verb + " " + strings.ReplaceAll(rest, ":", " "))
					w.timers[due{first.key, tag}] = to
				}
			}
			if got := d.sent(); !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
}

func TestHoldWatermark(t *testing.T) {
	hold := topology.HoldWatermark()
	timers := topology.Timers[string]("after")
	top := topology.New("t")
	p := timed{process: func(out emitter, r message) error {
		switch verb, _, _ := command(r.Value); verb {
		case "hold":
			_, _, at := command(r.Value)
			hold.Set(out, at)
		case "release":
			hold.Release(out)
		}
		at, ok := hold.Get(out)
		out.Emit(r.Key, fmt.Sprint(at == 15, " ", ok, " ", hold.Watermark(out)))
		return nil
	}}
	q := timed{process: func(out emitter, r message) error {
		out.Emit(r.Key, fmt.Sprint(r.Value, " ", timers.Watermark(out)))
		return nil
	}}
	top.Stream[string, string]("in").Timestamps(nil).
		ProcessWith("p", p.make, hold, topology.KeepsKey()).
		ProcessWith("q", q.make, timers).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(11, "k", ""), rec(11, "k", "hold x 15"), rec(31, "k", ""), rec(41, "k", ""))
	d.expect(t, fmt.Sprint("out@11 k=false false ", watermark.Unknown, " ", watermark.Unknown),
		"out@11 k=true true 10 10", "out@31 k=true true 10 10", "out@41 k=true true 30 14")
	logs := map[string]changelog{}
	d.commitTo(t, logs)
	d.feeds(t, "in", rec(51, "k", "release"), rec(61, "k", ""))
	d.expect(t, "out@51 k=false false 40 14", "out@61 k=false false 50 50")
	for _, again := range []func(){func() { d.abort(t) }, func() { d.restore(t, logs) }} {
		again()
		d.feeds(t, "in", rec(51, "k", ""), rec(61, "k", "release"), rec(61, "k", ""))
		d.expect(t, "out@51 k=true true 40 14", "out@61 k=false false 50 14", "out@61 k=false false 60 60")
	}
}

func TestTimersBuildErrors(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	p := timed{}
	one, two := topology.Timers[string]("one"), topology.Timers[string]("two")
	s.ProcessWith("a", p.make, one, two, topology.Every(time.Second), topology.Every(time.Minute)).To("out")
	s.ProcessWith("b", p.make, one, topology.Timers[int64]("three"), topology.Every(0)).To("out")
	s.Process("c", func(emitter, message) error { return nil }, topology.ProcessingTimers[string]("four")).To("out")
	s.ProcessWith("d", p.make, topology.Timers[string]("a")).To("out")
	_, err := top.Build()
	for _, want := range []string{
		"a: timers of event time are listed twice", "a: two periods", "b: timers one already are those of a",
		"b: timers three are for keys of type int64", "b: Every(0s)", "c: timers call a method", "d: duplicate id",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no error %q in %v", want, err)
		}
	}
	for name, h := range map[string]topology.Handle{"OnTimer": topology.Timers[string]("t"), "OnTick": topology.Every(time.Second)} {
		top := topology.New("t")
		top.Stream[string, string]("in").ProcessWith("p", func() topology.Processor[string, string, string, int64] {
			return &counter{opened: new(int), closed: new(int)}
		}, h).To("out")
		if _, err := newDriver(top); !errors.Is(err, processor.ErrNoMethod) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

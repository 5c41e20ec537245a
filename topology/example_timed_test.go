package topology_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

func ExampleStream_Dedup() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Dedup("ids", func(v string) string { return v[:1] }, time.Minute, topology.MatchAnyTime()).
		To("out")
	show(os.Stdout, t, "in", "a", "1 first", "a", "2 second", "a", "1 again", "b", "1 of another key")
	// Output:
	// out@0 a=1 first
	// out@1 a=2 second
	// out@3 b=1 of another key
}

func ExampleStream_TryDedup() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryDedup("ids", func(c *topology.Context, v string) (string, error) {
			id, _, ok := strings.Cut(v, " ")
			if !ok {
				return "", fmt.Errorf("no id in %q", v)
			}
			return id, nil
		}, time.Minute, topology.MatchAnyTime()).
		To("out")
	show(os.Stdout, t, "in", "a", "1 first", "a", "1 again", "a", "none")
	// Output:
	// processor: ids: user: no id in "none"
}

func ExampleSalted() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Dedup("ids", func(v string) string { return v }, time.Minute, topology.MatchAnyTime(), topology.Salted(8)).
		Count("n").
		To("out")
	show(os.Stdout, t, "in", "hot", "1", "hot", "2", "hot", "1", "hot", "3")
	// Output:
	// out@3 hot=3
}

// silence says when a key has been silent for 2 ms of event time.
type silence struct{ timers *topology.TimerStore[string] }

func (p silence) Process(out topology.Emitter[string, string], r topology.Record[string, string]) error {
	return p.timers.Set(out, "silent", r.Timestamp()+2) // moves the timer if it is set
}

func (p silence) OnTimer(out topology.Emitter[string, string], t topology.Timer[string]) error {
	out.Emit(t.Key, fmt.Sprintf("%s since %d", t.Tag, t.Time-2))
	return nil
}

func ExampleTimers() {
	timers := topology.Timers[string]("silence")

	t := topology.New("example")
	t.Stream[string, string]("in").
		ProcessWith("watch", func() topology.Processor[string, string, string, string] { return silence{timers} }, timers).
		To("out")
	show(os.Stdout, t, "in", "a", "", "b", "", "b", "", "c", "", "c", "", "c", "")
	// Output:
	// out@2 a=silent since 0
	// out@4 b=silent since 2
}

// batch emits what has come in once per second of processing time, whatever the watermark.
type batch struct {
	alarms *topology.TimerStore[string]
	values *topology.ListStore[string, string]
}

func (p batch) Process(out topology.Emitter[string, string], r topology.Record[string, string]) error {
	if _, set, err := p.alarms.Get(out, "emit"); err != nil {
		return err
	} else if !set {
		if err := p.alarms.Set(out, "emit", r.Now()+1000); err != nil {
			return err
		}
	}
	return p.values.Append(out, r.Key, r.Value)
}

func (p batch) OnTimer(out topology.Emitter[string, string], t topology.Timer[string]) error {
	var all []string
	err := p.values.Each(out, t.Key, func(v string) bool {
		all = append(all, v)
		return true
	})
	out.Emit(t.Key, strings.Join(all, " "))
	if err != nil {
		return err
	}
	return p.values.Clear(out, t.Key)
}

func ExampleProcessingTimers() {
	p := batch{topology.ProcessingTimers[string]("alarms"), topology.Lists[string, string]("values")}

	t := topology.New("example")
	t.Stream[string, string]("in").
		ProcessWith("batch", func() topology.Processor[string, string, string, string] { return p }, p.alarms, p.values).
		To("out")
	showAt(os.Stdout, t, 1001, "in", "a", "x", "a", "y", "b", "z")
	// Output:
	// out@1001 a=x y
	// out@1001 b=z
}

// heartbeat emits how many keys there are.
type heartbeat struct {
	keys *topology.KeyValueStore[string, string]
}

func (p heartbeat) Process(out topology.Emitter[string, int], r topology.Record[string, string]) error {
	return p.keys.Put(out, r.Key, r.Value)
}

func (p heartbeat) OnTick(out topology.Emitter[string, int], t topology.Tick) error {
	n := 0
	err := p.keys.Scan(out, nil, nil, func(string, string) bool {
		n++
		return true
	})
	out.Emit("keys", n)
	return err
}

func ExampleEvery() {
	p := heartbeat{topology.KeyValue[string, string]("keys")}

	t := topology.New("example")
	t.Stream[string, string]("in").
		ProcessWith("beat", func() topology.Processor[string, string, string, int] { return p }, p.keys, topology.Every(time.Second)).
		Map(func(n int) string { return fmt.Sprint(n) }).
		To("out")
	showAt(os.Stdout, t, 1000, "in", "a", "", "b", "", "a", "")
	// Output:
	// out@1000 keys=2
}

func ExampleTTL() {
	last := topology.KeyValue[string, string]("last", topology.TTL(2*time.Millisecond))

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("news", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			before, known, err := last.Get(out, r.Key)
			if err != nil {
				return err
			}
			if !known || before != r.Value {
				out.Emit(r.Key, r.Value)
			}
			return last.Put(out, r.Key, r.Value)
		}, last).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "x", "b", "y", "a", "x") // the last one is 2 ms after the one before
	// Output:
	// out@0 a=x
	// out@2 b=y
	// out@3 a=x
}

// sorter emits records in the order of their times, once the watermark says that none is missing.
type sorter struct {
	timers *topology.TimerStore[string]
	hold   *topology.WatermarkHold
}

func (p sorter) Process(out topology.Emitter[string, string], r topology.Record[string, string]) error {
	if at, held := p.hold.Get(out); !held || r.Timestamp() < at {
		p.hold.Set(out, r.Timestamp()) // what follows must not take the record for late when it comes
	}
	return p.timers.Set(out, r.Value, r.Timestamp()+2)
}

func (p sorter) OnTimer(out topology.Emitter[string, string], t topology.Timer[string]) error {
	out.EmitAt(t.Time-2, t.Key, t.Tag)
	p.hold.Set(out, t.Time-1) // later records have later times
	return nil
}

func ExampleHoldWatermark() {
	p := sorter{topology.Timers[string]("timers"), topology.HoldWatermark()}

	t := topology.New("example")
	t.Stream[string, string]("in").
		ProcessWith("sort", func() topology.Processor[string, string, string, string] { return p }, p.timers, p.hold, topology.KeepsKey()).
		Window(window.Tumbling(2 * time.Millisecond)).
		Count("n").
		Map(func(p topology.Pane[string, int64]) string { return fmt.Sprint(p.Value, " up to ", p.End) }).
		To("out")
	show(os.Stdout, t, "in", "a", "1", "a", "2", "a", "3", "a", "4", "a", "5", "a", "6")
	// Output:
	// out@1 a=2 up to 2
}

func ExampleWindows() {
	minute := window.Tumbling(2 * time.Millisecond)
	best := topology.Windows[string, string]("best", minute, time.Hour)

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("records", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			for _, w := range minute.Assign(nil, r.Timestamp()) {
				if before, _, err := best.Get(out, w, r.Key); err != nil || before >= r.Value {
					return err
				}
				if ok, err := best.Put(out, w, r.Key, r.Value); err != nil || !ok {
					return err // kept no longer: the record is too late
				}
				out.Emit(r.Key, fmt.Sprintf("%s in [%d, %d)", r.Value, w.Start, w.End))
			}
			return nil
		}, best).
		To("out")
	show(os.Stdout, t, "in", "a", "5", "a", "3", "a", "4", "a", "6")
	// Output:
	// out@0 a=5 in [0, 2)
	// out@2 a=4 in [2, 4)
	// out@3 a=6 in [2, 4)
}

func ExampleSessions() {
	visits := topology.Sessions[string, string]("visits", time.Hour)

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("sessions", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			visit, pages := window.Bounds{Start: r.Timestamp(), End: r.Timestamp() + 2}, r.Value
			err := visits.Overlapping(out, r.Key, visit, func(w window.Bounds, before string) bool {
				visit.Start, pages = w.Start, before+" "+pages
				return visits.Delete(out, r.Key, w) == nil
			})
			if err != nil {
				return err
			}
			out.Emit(r.Key, fmt.Sprintf("[%d, %d) %s", visit.Start, visit.End, pages))
			_, err = visits.Put(out, r.Key, visit, pages)
			return err
		}, visits).
		To("out")
	show(os.Stdout, t, "in", "a", "home", "a", "cart", "b", "home", "a", "home")
	// Output:
	// out@0 a=[0, 2) home
	// out@1 a=[0, 3) home cart
	// out@2 b=[2, 4) home
	// out@3 a=[3, 5) home
}

func ExampleVersioned() {
	prices := topology.Versioned[string, string]("prices", time.Hour)

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("changes", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if _, err := prices.Put(out, r.Key, r.Timestamp(), r.Value); err != nil {
				return err
			}
			before, since, ok, err := prices.AsOf(out, r.Key, r.Timestamp()-1)
			if ok {
				out.Emit(r.Key, fmt.Sprintf("%s, and %s since %d", r.Value, before, since))
			}
			return err
		}, prices).
		To("out")
	show(os.Stdout, t, "in", "a", "10", "b", "7", "a", "11", "a", "12")
	// Output:
	// out@2 a=11, and 10 since 0
	// out@3 a=12, and 11 since 2
}

func ExampleLists() {
	values := topology.Lists[string, string]("values")

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("last-two", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if err := values.Append(out, r.Key, r.Value); err != nil {
				return err
			}
			n, err := values.Len(out, r.Key)
			if err != nil {
				return err
			}
			if err := values.PopFront(out, r.Key, n-2); err != nil {
				return err
			}
			all := ""
			err = values.Each(out, r.Key, func(v string) bool {
				all += v
				return true
			})
			out.Emit(r.Key, all)
			return err
		}, values).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y", "a", "z")
	// Output:
	// out@0 a=x
	// out@1 a=xy
	// out@2 a=yz
}

package tidemarktest_test

import (
	"encoding/json/v2"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// A history names its topology by what it is made of: "tumbling 10, lateness 20, early after 2, discarding". Numbers are
// ms, or durations. It reads topic in, keys text and values int64, and writes the sums per key and window to topic out.
//
//	window     tumbling SIZE, hopping SIZE HOP, cumulate STEP MAX, session GAP, global, offset D,
//	           day ZONE, week ZONE WEEKDAY, month ZONE, quarter ZONE, year ZONE
//	time       delay D, stream-time, append-time, idle-after D, max-future D, all-idle max, all-idle clock,
//	           missing late, missing partition, payload (values are {"t":TIME,"n":NUMBER}), markers (a value below 0 is one),
//	           exported (header wm has the watermark), never idle
//	panes      lateness D, early T, late T, on-time WHEN, on-close WHEN, emit always, discarding, retracting, origin,
//	           where T is each, none, after N, every D, aligned D, or two of them with or between
//	aggregate  count, min, max
//	shape      shuffled (behind a KeyBy), merged (topics in and other), two-stage SIZE (the panes by their last letter in
//	           windows of that size), chained SIZE (the panes in windows of that size, in the same task)
func find(name string) (*tidemarktest.Scenario, error) {
	if s, ok := fixed()[name]; ok {
		s.Name = name
		return s, nil
	}
	b := &maker{aggregate: "sum"}
	for _, term := range strings.Split(name, ",") {
		f := strings.Fields(term)
		if len(f) == 0 {
			return nil, fmt.Errorf("empty term")
		}
		if err := b.term(f[0], f[1:]); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(term), err)
		}
	}
	if b.w.Kind() == 0 {
		return nil, fmt.Errorf("no window")
	}
	if _, err := window.New(b.w, b.opts...); err != nil {
		return nil, err
	}
	b.s.Name, b.s.Build, b.s.Window, b.s.Time, b.s.Marker = name, b.build, b.w, b.time, "z"
	if b.payload {
		b.s.EventTime = func(value string) (int64, bool) {
			var e event
			err := json.Unmarshal([]byte(value), &e)
			return e.at().UnixMilli(), err == nil && e.T != nil
		}
		b.s.Forms = append(b.s.Forms, tidemarktest.TopicForm[string, event]("in"), tidemarktest.TopicForm[string, event]("shuffle"))
	}
	return &b.s, nil
}

// event is a value with a time of its own.
type event struct {
	T *int64 `json:"t,omitempty"`
	N int64  `json:"n"`
}

func (e event) at() time.Time {
	if e.T == nil {
		return time.Time{}
	}
	return time.UnixMilli(*e.T)
}

// maker collects the terms.
type maker struct {
	s                                tidemarktest.Scenario
	w                                window.Window
	opts                             []window.Option
	time                             []watermark.Option
	aggregate                        string
	shuffled, merged, payload, retra bool
	second, chained                  time.Duration
}

func length(s string) (time.Duration, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Duration(n) * time.Millisecond, nil
	}
	return time.ParseDuration(s)
}

func (b *maker) term(verb string, args []string) (err error) {
	need := func(n int) bool {
		if err == nil && len(args) != n {
			err = fmt.Errorf("%d arguments, want %d", len(args), n)
		}
		return err == nil
	}
	d := func(i int) time.Duration {
		if err != nil || i >= len(args) {
			err = fmt.Errorf("missing argument %d", i+1)
			return 0
		}
		var v time.Duration
		v, err = length(args[i])
		return v
	}
	zone := func() *time.Location {
		loc, e := time.LoadLocation(args[0])
		if e != nil {
			err = e
			return time.UTC
		}
		return loc
	}
	when := func() window.When {
		return map[string]window.When{"always": window.Always, "never": window.Never, "if-new": window.IfNew}[strings.Join(args, " ")]
	}
	opt := func(o window.Option) { b.opts = append(b.opts, o) }
	clock := func(o watermark.Option) { b.time = append(b.time, o) }
	switch verb {
	case "tumbling":
		b.w = window.Tumbling(d(0))
	case "hopping":
		b.w = window.Hopping(d(0), d(1))
	case "cumulate":
		b.w = window.Cumulate(d(0), d(1))
	case "session":
		b.w = window.Session(d(0))
	case "global":
		b.w = window.Global()
	case "offset":
		b.w = b.w.Offset(d(0))
	case "day", "month", "quarter", "year":
		if need(1) {
			b.w = map[string]func(*time.Location) window.Window{
				"day": window.Day, "month": window.Month, "quarter": window.Quarter, "year": window.Year,
			}[verb](zone())
		}
	case "week":
		if need(2) {
			b.w = window.Week(zone(), map[string]time.Weekday{"Monday": time.Monday, "Sunday": time.Sunday}[args[1]])
		}
	case "delay":
		clock(watermark.OutOfOrderness(d(0)))
	case "stream-time":
		clock(watermark.StreamTime())
	case "append-time":
		clock(watermark.AppendTime())
	case "exported":
		clock(watermark.FromHeader("wm"))
	case "markers":
		clock(watermark.Punctuated("below zero", func(v int64) (time.Time, bool) { return time.UnixMilli(-v), v < 0 }))
	case "never":
		clock(watermark.IdleAfter(watermark.Never))
	case "idle-after":
		clock(watermark.IdleAfter(d(0)))
	case "max-future":
		clock(watermark.MaxFuture(d(0)))
	case "align":
		clock(watermark.Align(d(0)))
	case "all-idle":
		b.s.Clocked = b.s.Clocked || args[0] == "clock"
		clock(watermark.WhenAllIdle(map[string]watermark.AllIdle{"max": watermark.AdvanceToMax, "clock": watermark.AdvanceWithClock}[args[0]]))
	case "missing":
		clock(watermark.OnMissing(map[string]watermark.Missing{"late": watermark.Late, "partition": watermark.PartitionTime, "fail": watermark.Fail}[args[0]]))
	case "payload":
		b.payload = true
	case "lateness":
		if args[0] == "forever" {
			b.s.Lateness = window.Forever
		} else {
			b.s.Lateness = d(0)
		}
		opt(window.AllowedLateness(b.s.Lateness))
	case "early", "late":
		t, e := trigger(args)
		if err = e; err == nil {
			b.s.Clocked = b.s.Clocked || strings.Contains(strings.Join(args, " "), "every") || strings.Contains(strings.Join(args, " "), "aligned")
			opt(map[string]func(window.Trigger) window.Option{"early": window.Early, "late": window.Late}[verb](t))
		}
	case "on-time":
		opt(window.OnTime(when()))
	case "on-close":
		opt(window.OnClose(when()))
	case "emit":
		opt(window.EmitAlways())
	case "accumulating":
		opt(window.Accumulating())
	case "discarding":
		b.s.Sum = true
		opt(window.Discarding())
	case "retracting":
		b.retra = true
		opt(window.Retracting())
	case "origin":
		opt(window.Origin())
	case "count", "min", "max":
		b.aggregate = verb
	case "shuffled":
		b.shuffled = true
	case "merged":
		b.merged = true
	case "two-stage":
		b.shuffled, b.second = true, d(0)
	case "chained":
		b.chained = d(0)
	default:
		err = fmt.Errorf("no such term")
	}
	return err
}

// trigger parses "each", "none", "after 2", "every 10s or after 3".
func trigger(args []string) (window.Trigger, error) {
	var list []window.Trigger
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "each":
			list = append(list, window.EachElement())
			continue
		case "none":
			return window.None(), nil
		case "or":
			continue
		}
		if i+1 == len(args) {
			return window.Trigger{}, fmt.Errorf("trigger %q", args)
		}
		d, err := length(args[i+1])
		if err != nil {
			return window.Trigger{}, err
		}
		switch args[i] {
		case "after":
			list = append(list, window.AfterCount(int(d.Milliseconds())))
		case "every":
			list = append(list, window.Every(d))
		case "aligned":
			list = append(list, window.EveryAligned(d))
		default:
			return window.Trigger{}, fmt.Errorf("trigger %q", args)
		}
		i++
	}
	return window.AnyOf(list...), nil
}

func (b *maker) build() *topology.Topology {
	t := topology.New("scenario")
	var s *topology.Stream[string, int64]
	if b.payload {
		s = t.Stream[string, event]("in").Timestamps(event.at, b.time...).Map(func(e event) int64 { return e.N })
	} else {
		s = t.Stream[string, int64]("in").Timestamps(nil, b.time...)
	}
	if b.merged {
		s = s.Merge(t.Stream[string, int64]("other").Timestamps(nil, b.time...))
	}
	s = s.TryFilter(func(_ *topology.Context, k string, _ int64) (bool, error) { return k != "z", nil })
	if b.shuffled {
		s = s.TryKeyBy("shuffle", func(_ *topology.Context, k string, _ int64) (string, error) { return k, nil })
	}
	w := s.Window(b.w, b.opts...)
	panes := b.fold(w, "sums")
	panes.To("out")
	if b.second > 0 {
		panes.Values().
			TryKeyBy("second", func(_ *topology.Context, k string, _ int64) (string, error) { return k[len(k)-1:], nil }).
			Window(window.Tumbling(b.second), window.AllowedLateness(b.s.Lateness)).
			Sum("totals", func(v int64) int64 { return v }).
			To("totals")
	}
	if b.chained > 0 {
		panes.Values().
			Window(window.Tumbling(b.chained), window.AllowedLateness(b.s.Lateness)).
			Sum("totals", func(v int64) int64 { return v }).
			To("totals")
	}
	return t
}

func (b *maker) fold(w *topology.Windowed[string, int64], id string) *topology.Panes[string, int64] {
	same := func(v int64) int64 { return v }
	switch b.aggregate {
	case "count":
		return w.Count(id)
	case "min":
		return w.Min(id, same)
	case "max":
		return w.Max(id, same)
	}
	return w.Sum(id, same)
}

// fixed are topologies of other shapes.
func fixed() map[string]*tidemarktest.Scenario {
	set := []watermark.Option{watermark.OutOfOrderness(10 * time.Minute)}
	return map[string]*tidemarktest.Scenario{
		// Values are ids: each passes once, and what passes is counted per key and hour.
		"dedup 10m, tumbling 1h": {
			Window: window.Tumbling(time.Hour), Time: set, Marker: "z",
			Build: func() *topology.Topology {
				t := topology.New("dedup")
				t.Stream[string, int64]("in").Timestamps(nil, set...).
					TryFilter(func(_ *topology.Context, k string, _ int64) (bool, error) { return k != "z", nil }).
					TryKeyBy("cut", func(_ *topology.Context, k string, _ int64) (string, error) { return k, nil }).
					Dedup("ids", func(v int64) int64 { return v }, 10*time.Minute).
					Window(window.Tumbling(time.Hour)).Count("counts").To("out")
				return t
			},
		},
		// The latest value per key, times ten.
		"table": {
			Build: func() *topology.Topology {
				t := topology.New("table")
				t.Table[string, int64]("in", "rows").Map(func(v int64) int64 { return 10 * v }).To("out")
				return t
			},
		},
	}
}

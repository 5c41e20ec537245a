package upgrade_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

type (
	text     = topology.Stream[string, string]
	declare  = func(*topology.Topology)
	emitter  = topology.Emitter[string, string]
	message  = topology.Record[string, string]
	spending struct{ Micros int64 }
)

// shape builds a topology of what is declared and returns its shape.
func shape(t *testing.T, f declare) topology.Shape {
	t.Helper()
	top := topology.New("app")
	f(top)
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Shape()
}

func in(top *topology.Topology) *text { return top.Stream[string, string]("in") }
func events(top *topology.Topology) *text {
	return in(top).Timestamps(at, watermark.OutOfOrderness(time.Second))
}
func at(string) time.Time                   { return time.UnixMilli(0) }
func self(s string) string                  { return s }
func size(s string) int64                   { return int64(len(s)) }
func join(a, b string) string               { return a + b }
func nothing(emitter, message) error        { return nil }
func on(f func(*text)) declare              { return func(top *topology.Topology) { f(in(top)) } }
func timed(f func(*text)) declare           { return func(top *topology.Topology) { f(events(top)) } }
func count(opts ...topology.Option) declare { return on(func(s *text) { s.Count("n", opts...) }) }
func by(opts ...topology.Option) declare {
	return on(func(s *text) { s.KeyBy("by", self, opts...).Count("n") })
}

// windows counts in windows of a kind.
func windows(w window.Window, opts ...window.Option) declare {
	return timed(func(s *text) { s.Window(w, opts...).Count("n") })
}

// added folds without a merge, so that windows are not kept in slices.
func added(w window.Window, opts ...window.Option) declare {
	return timed(func(s *text) {
		s.Window(w, opts...).TryAggregate("n", func(_ *topology.Context, _ string, acc int64, _ string) (int64, error) { return acc + 1, nil })
	})
}

func ids(horizon time.Duration, opts ...topology.Option) declare {
	return timed(func(s *text) { s.Dedup("ids", self, horizon, opts...).To("out") })
}

func process(handles ...topology.Handle) declare {
	return timed(func(s *text) { s.Process("p", nothing, handles...) })
}

func sum(k *text, id string) { k.Sum(id, size) }

// money keeps the spending of each key in a version of its own.
func money(opts ...topology.Option) declare {
	return on(func(s *text) {
		s.Aggregate("n", topology.Fold(func(m spending, _ string) spending { return m }), opts...)
	})
}

func toMoney(n int64) (spending, error)      { return spending{n}, nil }
func sameMoney(m spending) (spending, error) { return m, nil }
func textMoney(s string) (spending, error)   { return spending{int64(len(s))}, nil }
func location(t *testing.T, n string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(n)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// row is a change of a topology and the rules that forbid it, as "operator/store: rule"; none for a free one.
type row struct {
	name     string
	was, now declare
	allow    []string
	want     []string
}

func incompatible(t *testing.T) []row {
	minute, hour := window.Tumbling(time.Minute), window.Tumbling(time.Hour)
	early := window.Early(window.Every(time.Second))
	kv := func(opts ...topology.Option) topology.Handle { return topology.KeyValue[string, string]("kv", opts...) }
	two := func(a, b string) declare {
		return func(top *topology.Topology) {
			in(top).Count(a)
			top.Stream[string, string]("other").Count(b)
		}
	}
	return []row{
		{"operator with state gone", on(func(s *text) { s.Count("n"); s.Count("m") }), count(), nil, []string{"m/m: " + topology.RuleMissing}},
		{"operator renamed", count(), on(func(s *text) { s.Count("m") }), nil, []string{"n/n: " + topology.RuleMissing}},
		{"store of a processor gone", process(kv(), topology.KeyValue[string, string]("b")), process(kv()), nil, []string{"p/b: " + topology.RuleMissing}},
		{"one gone, another allowed to", on(func(s *text) { s.Count("n"); s.Count("m"); s.Count("o") }), count(), []string{"o"}, []string{"m/m: " + topology.RuleMissing}},
		{"repartition gone", by(), count(), nil, []string{"by/: " + topology.RuleMissing}},
		{"count becomes sum", count(), on(func(s *text) { sum(s, "n") }), nil, []string{"n/n: " + topology.RuleOperatorKind}},
		{"store becomes repartition", count(), on(func(s *text) { s.KeyBy("n", self).Count("m") }), nil, []string{"n/n: " + topology.RuleOperatorKind}},
		{"key-value becomes windowed", count(), windows(minute), nil, []string{"n/n: " + topology.RuleStoreKind}},
		{"key-value becomes list", process(kv()), process(topology.Lists[string, string]("kv")), nil, []string{"p/kv: " + topology.RuleStoreKind}},
		{"rows begin to expire", process(kv()), process(kv(topology.TTL(time.Hour))), nil, []string{"p/kv: " + topology.RuleStoreKind}},
		{"time to live by the clock", process(kv(topology.TTL(time.Hour))), process(kv(topology.WallTTL(time.Hour))), nil, []string{"p/kv: " + topology.RuleTTLClock}},
		{"key type", count(), func(top *topology.Topology) { top.Stream[int64, string]("in").Count("n") }, nil, []string{"n/n: " + topology.RuleKey}},
		{"value type", on(func(s *text) { s.Sum("n", size) }), on(func(s *text) { s.Sum("n", func(string) float64 { return 1 }) }), nil, []string{"n/n: " + topology.RuleValue}},
		{"value codec", money(), money(topology.ValueCodec(avro(t))), nil, []string{"n/n: " + topology.RuleValue}},
		{"key and value", process(topology.KeyValue[string, int64]("kv")), process(topology.KeyValue[int64, string]("kv")), nil, []string{"p/kv: " + topology.RuleKey, "p/kv: " + topology.RuleValue}},
		{"version without migration", money(), money(topology.StateVersion(1)), nil, []string{"n/n: " + topology.RuleVersion}},
		{"migration of another version", money(), money(topology.StateVersion(2), topology.Migrate(1, nil, sameMoney)), nil, []string{"n/n: " + topology.RuleVersion}},
		{"migration of another type", count(), money(topology.StateVersion(1), topology.Migrate(0, nil, textMoney)), nil, []string{"n/n: " + topology.RuleValue}},
		{"older version", money(topology.StateVersion(2)), money(topology.StateVersion(1)), nil, []string{"n/n: " + topology.RuleNewer}},
		{"version left out again", money(topology.StateVersion(1)), money(), nil, []string{"n/n: " + topology.RuleNewer}},
		{"window kind", windows(minute), windows(window.Session(time.Minute)), nil, []string{"n/n: " + topology.RuleWindowKind}},
		{"window kind of equal length", added(minute), added(window.Hopping(time.Minute, time.Minute)), nil, []string{"n/n: " + topology.RuleWindowKind}},
		{"window size", windows(minute), windows(hour), nil, []string{"n/n: " + topology.RuleWindowSize}},
		{"window hop", added(window.Hopping(time.Minute, 20*time.Second)), added(window.Hopping(time.Minute, 30*time.Second)), nil, []string{"n/n: " + topology.RuleWindowHop}},
		{"session gap", windows(window.Session(time.Minute)), windows(window.Session(time.Hour)), nil, []string{"n/n: " + topology.RuleWindowGap}},
		{"sliding difference", added2(time.Minute), added2(time.Hour), nil, []string{"n/n-times: " + topology.RuleWindowSize, "n/n: " + topology.RuleWindowSize}},
		{"window offset", windows(hour), windows(hour.Offset(time.Minute)), nil, []string{"n/n: " + topology.RuleWindowOffset}},
		{"time zone", windows(window.Day(time.UTC)), windows(window.Day(location(t, "Europe/Berlin"))), nil, []string{"n/n: " + topology.RuleWindowZone}},
		{"first day of weeks", windows(window.Week(time.UTC, time.Monday)), windows(window.Week(time.UTC, time.Sunday)), nil, []string{"n/n: " + topology.RuleWindowKind}},
		{"day becomes month", windows(window.Day(time.UTC)), windows(window.Month(time.UTC)), nil, []string{"n/n: " + topology.RuleWindowKind}},
		{"discarding", windows(minute, early), windows(minute, early, window.Discarding()), nil, []string{"n/n: " + topology.RuleAccumulation}},
		{"accumulating", windows(minute, early, window.Discarding()), windows(minute, early), nil, []string{"n/n: " + topology.RuleAccumulation}},
		{"retracting", windows(minute, early), windows(minute, early, window.Retracting()), nil, []string{"n/n: " + topology.RuleAccumulation}},
		{"never on time", windows(minute, early, window.Discarding()), windows(minute, early, window.Discarding(), window.OnTime(window.Never)), nil, []string{"n/n: " + topology.RuleForm}},
		{"slices become windows", windows(window.Hopping(time.Minute, time.Second)), windows(window.Hopping(time.Minute, time.Second), early), nil, []string{"n/n: " + topology.RuleLayout}},
		{"windows become slices", windows(window.Hopping(time.Minute, time.Second), early), windows(window.Hopping(time.Minute, time.Second)), nil, []string{"n/n: " + topology.RuleLayout}},
		{"windows of a processor", process(topology.Windows[string, string]("w", minute, time.Hour)), process(topology.Windows[string, string]("w", hour, time.Hour)), nil, []string{"p/w: " + topology.RuleWindowSize}},
		{"id type", ids(time.Hour), timed(func(s *text) { s.Dedup("ids", size, time.Hour).To("out") }), nil, []string{"ids/ids: " + topology.RuleDedupID}},
		{"match of ids", ids(10*time.Minute, topology.MatchAnyTime()), ids(10 * time.Minute), nil, []string{"ids/ids: " + topology.RuleDedupMatch}},
		{"bucket of ids", ids(10*time.Minute, topology.MatchAnyTime()), ids(20*time.Minute, topology.MatchAnyTime()), nil, []string{"ids/ids: " + topology.RuleDedupBucket}},
		{"salts", ids(time.Hour, topology.Salted(2)), ids(time.Hour, topology.Salted(3)), nil, []string{"ids/ids: " + topology.RuleDedupSalts}},
		{"clock of timers", waits(topology.Timers[string]("t")), waits(topology.ProcessingTimers[string]("t")), nil, []string{"p/t: " + topology.RuleTimerClock}},
		{"repartition partitions", by(topology.Partitions(4)), by(topology.Partitions(8)), nil, []string{"by/: " + topology.RulePartitions}},
		{"repartition key", by(), on(func(s *text) { s.KeyBy("by", size).Count("n") }), nil, []string{"by/: " + topology.RuleKey, "n/n: " + topology.RuleKey}},
		{"repartition value", by(), on(func(s *text) { s.Map(size).KeyBy("by", func(n int64) string { return "" }).Count("n") }), nil, []string{"by/: " + topology.RuleValue}},
		{"ids exchanged over inputs", two("a", "b"), two("b", "a"), nil, []string{"a/a: " + topology.RuleMoved, "b/b: " + topology.RuleMoved}},
		{"ids exchanged over types", on(func(s *text) { s.Count("a"); s.Reduce("b", join) }), on(func(s *text) { s.Count("b"); s.Reduce("a", join) }), nil, []string{"a/a: " + topology.RuleMoved, "b/b: " + topology.RuleMoved}},
		{"stores of a processor exchanged",
			process(topology.KeyValue[string, string]("a"), topology.KeyValue[string, int64]("b")),
			process(topology.KeyValue[string, string]("b"), topology.KeyValue[string, int64]("a")), nil, []string{"p/a: " + topology.RuleMoved, "p/b: " + topology.RuleMoved}},
	}
}

func free() []row {
	minute := window.Tumbling(time.Minute)
	kv := func(opts ...topology.Option) topology.Handle { return topology.KeyValue[string, string]("kv", opts...) }
	return []row{
		{"nothing", by(), by(), nil, nil},
		{"lateness", windows(minute), windows(minute, window.AllowedLateness(time.Hour)), nil, nil},
		{"lateness shorter", windows(minute, window.AllowedLateness(window.Forever)), windows(minute, window.AllowedLateness(time.Hour)), nil, nil},
		{"triggers", windows(minute, window.Early(window.Every(time.Second))), windows(minute, window.Early(window.Every(time.Minute)), window.EmitAlways()), nil, nil},
		{"late triggers", windows(minute, window.AllowedLateness(time.Hour)), windows(minute, window.AllowedLateness(time.Hour), window.Late(window.Every(time.Minute))), nil, nil},
		{"accumulation of what shows once", windows(window.Hopping(time.Minute, time.Second)), windows(window.Hopping(time.Minute, time.Second), window.Discarding()), nil, nil},
		{"out-of-orderness and idle time-out", windows(minute), func(top *topology.Topology) {
			in(top).Timestamps(at, watermark.OutOfOrderness(time.Hour), watermark.IdleAfter(time.Minute)).Window(minute).Count("n")
		}, nil, nil},
		{"sink", count(), on(func(s *text) { s.Count("n").To("elsewhere") }), nil, nil},
		{"sink gone", on(func(s *text) { s.Count("n").To("out") }), count(), nil, nil},
		{"stateless operators", by(), on(func(s *text) { s.Filter(func(string) bool { return true }).Map(self).KeyBy("by", self).Count("n") }), nil, nil},
		{"every update", count(), count(topology.EveryUpdate()), nil, nil},
		{"new operator", count(), on(func(s *text) { s.Count("m"); s.Count("n") }), nil, nil},
		{"new repartition", count(), on(func(s *text) { s.Count("n"); s.KeyBy("by", self).Count("m") }), nil, nil},
		{"new input", count(), func(top *topology.Topology) { in(top).Merge(top.Stream[string, string]("more")).Count("n") }, nil, nil},
		{"horizon", ids(time.Hour), ids(2 * time.Hour), nil, nil},
		{"time to live", process(kv(topology.TTL(time.Hour))), process(kv(topology.TTL(2 * time.Hour))), nil, nil},
		{"how long windows are kept", process(topology.Windows[string, string]("w", minute, time.Hour)), process(topology.Windows[string, string]("w", minute, 2*time.Hour)), nil, nil},
		{"processor renamed", process(kv()), timed(func(s *text) { s.Process("q", nothing, kv()) }), nil, nil},
		{"count becomes an aggregate", count(), on(func(s *text) { s.Aggregate("n", topology.Fold(func(n int64, _ string) int64 { return n + 1 })) }), nil, nil},
		{"partitions declared that were derived", by(), by(topology.Partitions(4)), nil, nil},
		{"operator left behind", on(func(s *text) { s.Count("n"); s.Count("m") }), count(), []string{"m"}, nil},
		{"repartition left behind", on(func(s *text) { s.Count("n"); s.KeyBy("by", self).Count("m") }), count(), []string{"by", "m"}, nil},
		{"store of a processor left behind", process(kv(), topology.KeyValue[string, string]("b")), process(kv()), []string{"b"}, nil},
		{"migration", count(), money(topology.StateVersion(1), topology.Migrate(0, nil, toMoney)), nil, nil},
		{"two migrations", count(), money(topology.StateVersion(2), topology.Migrate(0, nil, toMoney), topology.Migrate(1, nil, sameMoney)), nil, nil},
		{"a migration more", money(topology.StateVersion(1)), money(topology.StateVersion(2), topology.Migrate(1, nil, sameMoney)), nil, nil},
		{"migration given up", money(topology.StateVersion(2), topology.Migrate(1, nil, sameMoney)), money(topology.StateVersion(2)), nil, nil},
		{"migrated while another begins as it was", count(), func(top *topology.Topology) {
			money(topology.StateVersion(1), topology.Migrate(0, nil, toMoney))(top)
			in(top).Count("m")
		}, nil, nil},
	}
}

// waiter is a processor with timers.
type waiter struct {
	topology.Processor[string, string, string, string]
}

func (waiter) OnTimer(emitter, topology.Timer[string]) error { return nil }

func waits(timers topology.Handle) declare {
	return timed(func(s *text) {
		s.ProcessWith("p", func() topology.Processor[string, string, string, string] { return waiter{} }, timers)
	})
}

// added2 counts in sliding windows.
func added2(d time.Duration) declare { return windows(window.Sliding(d)) }

func avro(t *testing.T) codec.Codec[spending] {
	t.Helper()
	c, err := codec.Avro[spending](`{"type":"record","name":"s","fields":[{"name":"Micros","type":"long"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every change that loses or mistakes state is found and named, every other one is free.
func TestCompare(t *testing.T) {
	bad, good := incompatible(t), free()
	for _, r := range bad {
		if len(r.want) == 0 {
			t.Errorf("%s forbids nothing", r.name)
		}
	}
	if len(bad) < 40 || len(good) < 25 {
		t.Errorf("%d rows that are refused, %d that are free", len(bad), len(good))
	}
	rules := map[string]bool{}
	for _, r := range slices.Concat(bad, good) {
		t.Run(r.name, func(t *testing.T) {
			var got []string
			was, now := shape(t, r.was), shape(t, r.now)
			for _, d := range topology.Compare(was, now, topology.CompareOptions{AllowNonRestored: r.allow, App: "clicks"}) {
				got = append(got, d.Operator+"/"+d.Store+": "+d.Rule)
				rules[d.Rule] = true
				if d.Was == "" || d.Now == "" || d.Was == d.Now || len(d.Remedy) < 20 || strings.Contains(d.Remedy, "<app>") {
					t.Errorf("%+v", d)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, r.want) {
				t.Errorf("got %q, want %q", got, r.want)
			}
			if len(got) > 0 && was.Fingerprint == now.Fingerprint {
				t.Error("instances of both would share the work")
			}
			// What is recorded says the same.
			if again := topology.Compare(recorded(t, was), now, topology.CompareOptions{AllowNonRestored: r.allow}); len(again) != len(got) {
				t.Errorf("recorded: %q", again)
			}
		})
	}
	for _, rule := range []string{
		topology.RuleMissing, topology.RuleMoved, topology.RuleOperatorKind, topology.RuleStoreKind, topology.RuleKey, topology.RuleValue,
		topology.RuleVersion, topology.RuleNewer, topology.RuleForm, topology.RuleLayout, topology.RuleWindowKind, topology.RuleWindowSize,
		topology.RuleWindowHop, topology.RuleWindowGap, topology.RuleWindowOffset, topology.RuleWindowZone, topology.RuleAccumulation,
		topology.RuleDedupID, topology.RuleDedupBucket, topology.RuleDedupMatch, topology.RuleDedupSalts, topology.RuleTTLClock,
		topology.RuleTimerClock, topology.RulePartitions,
	} {
		if !rules[rule] {
			t.Errorf("no row shows the rule %q", rule)
		}
	}
}

// recorded is a shape after it was written down and read again.
func recorded(t *testing.T, s topology.Shape) topology.Shape {
	t.Helper()
	out := topology.Shape{Topology: s.Topology, Fingerprint: s.Fingerprint, Subs: s.Subs}
	for _, o := range s.Operators {
		b, err := o.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := topology.DecodeOperatorShape(b)
		if err != nil {
			t.Fatal(err)
		}
		out.Operators = append(out.Operators, again)
	}
	return out
}

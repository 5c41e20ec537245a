package topology_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
)

// deduplicated is a topology that drops values that came before.
func deduplicated(disorder, horizon time.Duration, opts ...topology.Option) *topology.Topology {
	top := topology.New("t")
	top.Stream[string, string]("in").
		Timestamps(nil, watermark.OutOfOrderness(disorder)).
		Dedup("d", self, horizon, opts...).To("out")
	return top
}

// passing feeds values at the given times, in seconds or ms as unit says, and returns the times of those that pass.
func passing(t *testing.T, d *driver, unit int64, times ...int64) (passed []int64) {
	t.Helper()
	for _, at := range times {
		d.feeds(t, "in", rec(at*unit, "k", "x"))
		for _, o := range d.out {
			if o.topic == "out" {
				passed = append(passed, o.time/unit)
			}
		}
		d.out = nil
	}
	return passed
}

// D-TTL-RENEW: by event time an id is a duplicate at the same time only; by any time the horizon counts from the last
// record that passed.
func TestDedupRenewal(t *testing.T) {
	times := []int64{0, 51, 60, 100, 130}
	for _, unit := range []int64{1, 1000} {
		horizon := time.Duration(50*unit) * time.Millisecond
		got := passing(t, start(t, deduplicated(time.Hour, horizon, topology.MatchAnyTime())), unit, times...)
		if fmt.Sprint(got) != "[0 51 130]" {
			t.Errorf("any time, unit %d: %d pass", unit, got)
		}
		got = passing(t, start(t, deduplicated(time.Hour, horizon)), unit, 0, 51, 51, 60, 0, 130, 60)
		if fmt.Sprint(got) != "[0 51 60 130]" {
			t.Errorf("event time, unit %d: %d pass", unit, got)
		}
	}
	// What comes later with an earlier time counts as well.
	got := passing(t, start(t, deduplicated(time.Hour, 50*time.Second, topology.MatchAnyTime())), 1000, 100, 50, 49, 30)
	if fmt.Sprint(got) != "[100 49]" {
		t.Errorf("backwards: %d pass", got)
	}
}

func TestDedupTellsKeysApart(t *testing.T) {
	d := start(t, deduplicated(0, time.Hour))
	d.feeds(t, "in", rec(1, "a", "bc"), rec(1, "ab", "c"), rec(1, "a", "bc", processor.Header{Key: "again"}), rec(1, "", "abc"))
	d.expect(t, "out@1 a=bc", "out@1 ab=c", "out@1 =abc")
	wantError(t, d.feed("in", rec(1, "null", "x")), "d", processor.StageNullKey, "null")
}

func TestDedupHorizon(t *testing.T) {
	d := start(t, deduplicated(0, 10*time.Minute))
	const minute = 60_000
	// The bucket of the first minute is dropped when the watermark is at its end plus ten minutes.
	d.feeds(t, "in", rec(minute-1, "k", "a"), rec(11*minute, "k", "b")) // the watermark is at 11 minutes less 1 ms
	d.feeds(t, "in", rec(minute-1, "k", "a"), rec(0, "k", "c"), rec(11*minute+1, "k", "d"))
	d.feeds(t, "in", rec(minute-1, "k", "a"), rec(0, "k", "e"), rec(minute, "k", "f"))
	d.expect(t, "out@59999 k=a", "out@660000 k=b", "out@0 k=c", "out@660001 k=d",
		"late dedup_horizon@59999 k=a", "late dedup_horizon@0 k=e", "out@60000 k=f")
	c := d.counters("d")
	if c.In != 8 || c.Folded != 5 || c.Duplicates != 1 || c.Late[processor.DedupHorizon] != 2 {
		t.Errorf("counted %+v", c)
	}
	// The last bucket before 1970 and the first one after it are two.
	d = start(t, deduplicated(0, 10*time.Minute))
	d.feeds(t, "in", rec(10*minute+1, "k", "a"), rec(-2, "k", "b"), rec(0, "k", "c"))
	d.expect(t, "out@600001 k=a", "late dedup_horizon@-2 k=b", "out@0 k=c")
}

// Times before 1970 and at the ends of the calendar.
func TestDedupTimes(t *testing.T) {
	for _, opts := range [][]topology.Option{nil, {topology.MatchAnyTime()}} {
		d := start(t, deduplicated(time.Hour, time.Minute, opts...))
		far := int64(1) << 62
		d.feeds(t, "in", rec(-far, "k", "a"), rec(-far, "k", "a"), rec(-60_001, "k", "a"), rec(-60_001, "k", "a"),
			rec(far, "k", "a"), rec(far, "k", "a"))
		d.expect(t, fmt.Sprintf("out@%d k=a", -far), "out@-60001 k=a", fmt.Sprintf("out@%d k=a", far))
	}
}

func TestDedupWithoutID(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").
		TryDedup("d", func(c *topology.Context, v string) ([]byte, error) {
			c.AddHeader("note", nil)
			if v == "none" {
				return nil, nil
			}
			return []byte(v), nil
		}, time.Hour).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "none"), rec(1, "k", "none"), rec(1, "k", ""), rec(1, "k", ""))
	d.expect(t, "out@1 k=none note:null", "out@1 k=none note:null", "out@1 k= note:null")
}

// D-DEDUP-GROWTH: with ids over ten hours and a horizon of one, the live ones stay those of one hour and a bucket.
func TestDedupGrowth(t *testing.T) {
	d := start(t, deduplicated(0, time.Hour))
	const perMinute, minutes = 20, 10 * 60
	for m := range int64(minutes) {
		for i := range int64(perMinute) {
			d.feeds(t, "in", rec(m*60_000+i, "k", fmt.Sprint(m, i)))
		}
		if m%10 != 9 {
			continue
		}
		d.commits(t)
		state, n := d.tasks["d"].state, 0
		if err := state.Persist(0, true); err != nil {
			t.Fatal(err)
		}
		if err := state.Rows(0, func(_, _ []byte) { n++ }); err != nil {
			t.Fatal(err)
		}
		if n > 62*perMinute {
			t.Fatalf("minute %d: %d ids are live", m, n)
		}
	}
	if c := d.counters("d"); c.Folded != perMinute*minutes {
		t.Errorf("counted %+v", c)
	}
}

// A naive twin that forgets nothing, under aborts and restores.
func TestDedupAgainstATwin(t *testing.T) {
	const horizon, width = 5 * 60_000, 60_000
	for name, opts := range map[string][]topology.Option{
		"event time": nil, "any time": {topology.MatchAnyTime()},
		"salted": {topology.Salted(3)}, "salted, any time": {topology.Salted(5), topology.MatchAnyTime()},
	} {
		seed := rand.Uint64()
		t.Logf("%s: seed %d", name, seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		d := start(t, deduplicated(90*time.Second, horizon*time.Millisecond, opts...))
		wide := int64(width)
		any := strings.Contains(name, "any")
		if any {
			wide = horizon / 10
		}
		type twin struct {
			passed map[string][]int64 // times by key and id
			w      int64
		}
		now, logs := twin{map[string][]int64{}, watermark.Unknown}, map[string]changelog{}
		saved := twin{map[string][]int64{}, watermark.Unknown}
		salted := strings.HasPrefix(name, "salted")
		floor := func(x, y int64) int64 { return (x - ((x%y)+y)%y) / y }
		top := int64(-5 * 3_600_000) // half of the times are before 1970
		for range 4000 {
			switch n := rng.IntN(100); {
			case n < 3:
				d.commitTo(t, logs)
				saved = twin{maps.Clone(now.passed), now.w}
				d.out = nil
			case n < 4:
				d.abort(t)
				now = twin{maps.Clone(saved.passed), saved.w}
			case n < 5:
				d.restore(t, logs)
				now = twin{maps.Clone(saved.passed), saved.w}
			}
			top += int64(rng.IntN(20_000))
			at := top - int64(rng.IntN(9*60_000))/1000*1000
			if rng.IntN(3) == 0 {
				at = top
			}
			if at == -1 {
				at = 0 // -1 is no time
			}
			key, id := fmt.Sprint("k", rng.IntN(2)), fmt.Sprint("i", rng.IntN(4))
			want := fmt.Sprintf("out@%d %s=%s", at, key, id)
			row := key + " " + id
			if now.w != watermark.Unknown && floor(at, wide) < floor(now.w-horizon, wide) {
				want = fmt.Sprintf("late dedup_horizon@%d %s=%s", at, key, id)
			} else {
				dup := false
				for _, p := range now.passed[row] {
					dup = dup || p == at || any && max(p-at, at-p) <= horizon
				}
				if dup {
					want = ""
				} else {
					now.passed[row] = append(now.passed[row][:len(now.passed[row]):len(now.passed[row])], at)
				}
			}
			now.w = max(now.w, at-90_001)
			d.feeds(t, "in", rec(at, key, id))
			got := strings.Join(d.sent(), " ")
			if salted && strings.HasPrefix(got, "late ") {
				// The key of the late record is that of the topic it came from.
				i := strings.Index(got, "=") - len(key)
				got = got[:i-2] + got[i:]
			}
			if got != want {
				t.Fatalf("%s: %d %s: sent %q, want %q", name, at, row, got, want)
			}
		}
		if c := d.counters("d"); c.In != c.Folded+c.Duplicates+c.Late[processor.DedupHorizon] {
			t.Errorf("%s: counted %+v", name, c)
		}
	}
}

func TestDedupPlan(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").KeyBy("by", self).
		Dedup("d", self, time.Minute, topology.Salted(4), topology.Partitions(8), topology.MatchAnyTime()).
		Count("n")
	golden(t, "dedup.txt", build(t, top).Describe())
}

func TestDedupBuildErrors(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.Dedup("none", self, 0).To("out")
	s.Dedup("fraction", self, time.Minute+time.Microsecond).To("out")
	s.Dedup("float", func(string) map[string]int { return nil }, time.Minute).To("out")
	s.Dedup("salt", self, time.Minute, topology.Salted(0)).To("out")
	s.Dedup("partitions", self, time.Minute, topology.Partitions(3)).To("out")
	s.Dedup[string]("nil", nil, time.Minute).To("out")
	s.Dedup("ok", self, time.Minute).To("out")
	p := topology.ReadOnly[string, string]("ok")
	s.Process("p", func(topology.Emitter[string, string], topology.Record[string, string]) error { return nil }, p)
	_, err := top.Build()
	for _, want := range []string{
		"none: a Dedup needs a horizon", "fraction: the horizon 1m0.000001s has fractions", "float: the key type is not fit",
		"salt-salted: Salted(0)", "partitions: Partitions means", "nil: the function is nil", `p: store "ok" holds`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no error %q in %v", want, err)
		}
	}
}

package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

func atoi(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func TestAggregates(t *testing.T) {
	for _, c := range []struct {
		name, want string
		declare    func(s *topology.Stream[string, string], opts ...topology.Option) *topology.Table[string, int64]
	}{
		{"count", "1 2 3 4", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Count("a", o...)
		}},
		{"sum", "5 8 7 13", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Sum("a", atoi, o...)
		}},
		{"min", "5 3 -1 -1", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Min("a", atoi, o...)
		}},
		{"max", "5 5 5 6", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Max("a", atoi, o...)
		}},
		{"reduce", "5 15 -15 -90", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Map(atoi).Reduce("a", func(a, b int64) int64 { return a * b }, o...)
		}},
		{"aggregate", "5 8 7 13", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Aggregate("a", topology.Fold(func(a int64, v string) int64 { return a + atoi(v) }), o...)
		}},
		{"fold into", "5 8 7 13", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.Aggregate("a", topology.FoldInto(func(a *int64, v string) { *a += atoi(v) }), o...)
		}},
		{"try aggregate", "6 10 10 17", func(s *topology.Stream[string, string], o ...topology.Option) *topology.Table[string, int64] {
			return s.TryAggregate("a", func(_ *topology.Context, k string, a int64, v string) (int64, error) {
				return a + atoi(v) + int64(len(k)), nil
			}, o...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, every := range []bool{true, false} {
				top := topology.New("t")
				var opts []topology.Option
				if every {
					opts = append(opts, topology.EveryUpdate())
				}
				c.declare(top.Stream[string, string]("in"), opts...).Map(func(n int64) string { return fmt.Sprint(n) }).To("out")
				d := start(t, top)
				// Timestamps go back and forth: a result has the maximum so far.
				d.feeds(t, "in", rec(10, "k", "5"), rec(12, "k", "3"), rec(11, "k", "-1"), rec(13, "k", "6"))
				d.commits(t)
				var want []string
				for i, v := range strings.Fields(c.want) {
					want = append(want, fmt.Sprintf("out@%d k=%s", []int{10, 12, 12, 13}[i], v))
				}
				if !every {
					want = want[3:]
				}
				d.expect(t, want...)
				d.commits(t)
				d.expect(t)
			}
		})
	}
}

func TestAggregateToNullDeletes(t *testing.T) {
	for _, every := range []bool{true, false} {
		top := topology.New("t")
		var opts []topology.Option
		if every {
			opts = append(opts, topology.EveryUpdate())
		}
		agg := top.Stream[string, string]("in").
			Aggregate("a", topology.Fold(func(a []byte, v string) []byte {
				if v == "reset" {
					return nil
				}
				return append(a[:len(a):len(a)], v...)
			}), opts...)
		agg.To("out")
		agg.ToStream().To("stream")
		d := start(t, top)
		d.feeds(t, "in", rec(1, "k", "a"))
		d.commits(t)
		d.expect(t, "out@1 k=a", "stream@1 k=a")
		d.feeds(t, "in", rec(2, "k", "reset"))
		d.commits(t)
		d.expect(t, "out@2 k=null", "stream@2 k=null")
		d.feeds(t, "in", rec(3, "k", "reset"), rec(4, "k", "b"))
		d.commits(t)
		d.expect(t, "out@4 k=b", "stream@4 k=b")
	}
}

func TestAggregateUserError(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").TryAggregate("a", func(_ *topology.Context, _ string, a int64, v string) (int64, error) {
		if v == "bad" {
			return 99, errors.New("bad")
		}
		return a + 1, nil
	}).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "x"))
	wantError(t, d.feed("in", rec(2, "k", "bad")), "a", processor.StageUser, "bad")
	d.feeds(t, "in", rec(1, "k", "x"))
	d.commits(t)
	d.expect(t, "out@1 k=2")
}

// A-EMPTY-KEY: an empty key and an empty value are not null.
func TestAEmptyKey(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[[]byte, []byte]("in")
	s.Count("counts").To("out")
	s.Reduce("last", func(_, v []byte) []byte { return v }).To("values")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "", ""))
	d.commits(t)
	d.expect(t, "out@1 =1", "values@1 =")
	for _, o := range d.out {
		if o.key == nil || o.value == nil {
			t.Errorf("null in %v", o)
		}
	}
}

// A-FLUSH-ORDER: the flush follows the topology, so that a second aggregate of the task has all of the first.
func TestAFlushOrder(t *testing.T) {
	top := topology.New("t")
	in := top.Stream[string, string]("in")
	second := func(s *topology.Stream[string, int64]) { s.Count("a-updates").To("updates") }
	sums := in.Sum("z-sums", atoi)
	second(sums.ToStream())
	sums.ToStream().KeyBy("parity", func(n int64) string { return strconv.FormatInt(n&1, 10) }).Count("b-parity").To("parity")
	d := start(t, top)
	for i := range 100 {
		d.feeds(t, "in", rec(int64(i), fmt.Sprintf("k%02d", i), "1"), rec(int64(i), fmt.Sprintf("k%02d", i), strconv.Itoa(i)))
	}
	d.expect(t)
	d.commits(t)
	updates, parity := 0, map[string]string{}
	for _, o := range d.out {
		switch o.topic {
		case "updates":
			updates++
			if text(o.value) != "1" {
				t.Errorf("%v: more than one update per key and commit", o)
			}
		case "parity":
			parity[text(o.key)] = text(o.value)
		}
	}
	if updates != 100 || parity["0"] != "50" || parity["1"] != "50" {
		t.Errorf("updates of %d keys, parity %v", updates, parity)
	}
	d.out = nil
	d.commits(t)
	d.expect(t)
}

// An abort rolls the state back and builds a new task over it.
func TestAbort(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Count("n").To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"))
	d.commits(t)
	d.feeds(t, "in", rec(1, "k", "v"), rec(1, "other", "v"))
	dt := d.tasks["n"]
	if err := dt.task.Close(); err != nil {
		t.Fatal(err)
	}
	dt.state.Rollback()
	if err := dt.build(); err != nil {
		t.Fatal(err)
	}
	d.out = nil
	d.feeds(t, "in", rec(1, "k", "v"))
	d.commits(t)
	d.expect(t, "out@1 k=2")
}

// TestAgainstNaive compares a topology with plain maps on random input, with commits and aborts at random places.
func TestAgainstNaive(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		top := topology.New("t")
		sum := top.Stream[string, string]("in").
			Filter(func(v string) bool { return v != "0" }).
			Map(atoi).
			Sum("sum", func(n int64) int64 { return n })
		sum.Filter(func(n int64) bool { return n%3 == 0 }).Map(func(n int64) int64 { return -n }).To("thirds")
		sum.Changes(func(c topology.Change[string, int64]) (int64, bool) { return c.New - c.Old, true }).To("deltas")
		sum.To("sums")
		d := start(t, top)
		naive := map[string]int64{}
		mirror := map[string]map[string]int64{"thirds": {}, "deltas": {}, "sums": {}} // what a reader of the topics has
		read := func() {
			for _, o := range d.out {
				m := mirror[o.topic]
				switch {
				case o.value == nil:
					if _, ok := m[string(o.key)]; !ok {
						t.Fatalf("seed %d: tombstone %v of a key that was not there", seed, o)
					}
					delete(m, string(o.key))
				case o.topic == "deltas":
					m[string(o.key)] += atoi(text(o.value))
				default:
					m[string(o.key)] = atoi(text(o.value))
				}
			}
			d.out = nil
		}
		for range 40 {
			pending := map[string]int64{}
			for range rng.IntN(30) {
				k, n := fmt.Sprint("k", rng.IntN(8)), int64(rng.IntN(5))
				d.feeds(t, "in", rec(rng.Int64N(100), k, fmt.Sprint(n)))
				if n != 0 {
					pending[k] += n
				}
			}
			if rng.IntN(4) == 0 {
				dt := d.tasks["sum"]
				dt.state.Rollback()
				if err := dt.build(); err != nil {
					t.Fatal(err)
				}
				d.out = nil
				continue
			}
			for k, n := range pending {
				naive[k] += n
			}
			d.commits(t)
			read()
			for k, n := range naive {
				third, ok := mirror["thirds"][k]
				if mirror["sums"][k] != n || mirror["deltas"][k] != n || ok != (n%3 == 0) || third != 0 && third != -n {
					t.Fatalf("seed %d: key %s: %d, topics have %v", seed, k, n, mirror)
				}
			}
			if len(mirror["sums"]) != len(naive) {
				t.Fatalf("seed %d: %d keys, want %d", seed, len(mirror["sums"]), len(naive))
			}
		}
	}
}

// What follows an aggregate has the typed key, whether results come at once or at the commit.
func TestTypedKeyBehindAnAggregate(t *testing.T) {
	for _, opts := range [][]topology.Option{nil, {topology.EveryUpdate()}} {
		top := topology.New("t")
		top.Stream[string, string]("in").Count("n", opts...).
			TryMap(func(_ *topology.Context, k string, n int64) (string, error) { return fmt.Sprint(k, n), nil }).To("out")
		d := start(t, top)
		d.feeds(t, "in", rec(1, "k", "v"))
		d.commits(t)
		d.expect(t, "out@1 k=k1")
	}
}

// A row that came and went between two commits is no change.
func TestRowThatCameAndWent(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, []byte]("in").Reduce("last", func(_, v []byte) []byte { return v }).
		Changes(func(c topology.Change[string, []byte]) (string, bool) {
			return fmt.Sprintf("%s->%s", c.Old, c.New), true
		}).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"), rec(2, "k", "null"), rec(3, "other", "v"))
	d.commits(t)
	d.expect(t, "out@3 other=->v")
}

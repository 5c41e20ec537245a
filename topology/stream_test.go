package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

func TestFilterMap(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").
		Filter(func(v string) bool { return v != "" }).
		Map(strings.ToUpper).
		To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "a", "x"), rec(2, "b", ""), rec(3, "null", "y"), rec(4, "", "z"))
	d.expect(t, "out@1 a=X", "out@3 null=Y", "out@4 =Z")
}

func TestTryForms(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in").
		TryFilter(func(c *topology.Context, k, v string) (bool, error) {
			c.AddHeader("filter", []byte(c.Operator()))
			return k != "skip", nil
		}).
		TryMap(func(c *topology.Context, k, v string) (string, error) {
			return fmt.Sprintf("%s/%s@%s-%d-%d", k, v, c.Topic(), c.Partition(), c.Offset()), nil
		}).
		TryPeek(func(c *topology.Context, k, v string) error {
			c.AddHeader("peek", nil)
			if c.Timestamp() == 0 || c.Now() != 1 || c.Task().String() != "in/0" || string(c.KeyBytes()) != k {
				return fmt.Errorf("context: %d %d %v %q", c.Timestamp(), c.Now(), c.Task(), c.KeyBytes())
			}
			return nil
		})
	s.To("out")
	s.TryFlatMap(func(c *topology.Context, k, v string, emit func(string) error) error {
		for i := range 2 {
			c.AddHeader("n", []byte{'0' + byte(i)})
			if err := emit(k); err != nil {
				return err
			}
		}
		return nil
	}).To("flat")
	s.To("after")
	d := start(t, top)
	d.feeds(t, "in", rec(7, "a", "x"), rec(8, "skip", "x"))
	const h = " filter:filter#1 peek:null"
	d.expect(t, "out@7 a=a/x@in-0-0"+h, "flat@7 a=a"+h+" n:0", "flat@7 a=a"+h+" n:0 n:1", "after@7 a=a/x@in-0-0"+h)
}

func TestFlatMap(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").FlatMap(func(v string, emit func(string)) {
		for _, w := range strings.Fields(v) {
			emit(w)
		}
	}).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "a b c"), rec(2, "k", ""))
	d.expect(t, "out@1 k=a", "out@1 k=b", "out@1 k=c")
}

func TestFlatMapStopsAtAnError(t *testing.T) {
	for _, long := range []bool{false, true} {
		top := topology.New("t")
		emitted := 0
		s := top.Stream[string, string]("in")
		var f *topology.Stream[string, int]
		if long {
			f = s.TryFlatMap(func(_ *topology.Context, _, _ string, emit func(int) error) error {
				for i := range 3 {
					emitted++
					_ = emit(i) // the record fails all the same
				}
				return nil
			})
		} else {
			f = s.FlatMap(func(_ string, emit func(int)) {
				for i := range 3 {
					emitted++
					emit(i)
				}
			})
		}
		downstream := 0
		f.TryPeek(func(_ *topology.Context, _ string, n int) error {
			downstream++
			if n == 1 {
				return errors.New("no ones")
			}
			return nil
		}).To("out")
		d := start(t, top)
		wantError(t, d.feed("in", rec(1, "k", "v")), "peek#1", processor.StageUser, "no ones")
		if emitted != 3 || downstream != 2 {
			t.Errorf("long=%v: emitted %d, downstream %d", long, emitted, downstream)
		}
		d.sent()
		wantError(t, d.feed("in", rec(1, "k", "v")), "peek#1", processor.StageUser, "no ones")
		d.expect(t, "out@1 k=0")
	}
}

func TestFanOutKeepsTheOrderOfDeclaration(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	for i := range 4 {
		s.Map(func(v string) string { return fmt.Sprint(v, i) }).To("out")
	}
	s.To("raw")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"))
	d.expect(t, "out@1 k=v0", "out@1 k=v1", "out@1 k=v2", "out@1 k=v3", "raw@1 k=v")
}

func TestPeek(t *testing.T) {
	top := topology.New("t")
	var seen []string
	top.Stream[string, string]("in").Peek(func(v string) { seen = append(seen, v) })
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"), rec(1, "k", "w"))
	if fmt.Sprint(seen) != "[v w]" {
		t.Error(seen)
	}
}

func TestMerge(t *testing.T) {
	top := topology.New("t")
	a := top.Stream[string, string]("a")
	b := top.Stream[string, string]("b").Map(strings.ToUpper)
	a.Merge(b, a).To("out")
	d := start(t, top)
	d.feeds(t, "a", rec(1, "k", "x"))
	d.feeds(t, "b", rec(2, "k", "y"))
	d.expect(t, "out@1 k=x", "out@1 k=x", "out@2 k=Y")
}

// quoted is a codec of strings with quotes around them.
type quoted struct{}

func (quoted) Append(dst []byte, v string) ([]byte, error) { return append(dst, `"`+v+`"`...), nil }
func (quoted) Decode(b []byte) (string, error) {
	if len(b) < 2 || b[0] != '"' {
		return "", codec.ErrMalformed
	}
	return string(b[1 : len(b)-1]), nil
}
func (quoted) JSON(dst, b []byte) ([]byte, error) { return append(dst, b...), nil }
func (quoted) Schema() string                     { return "quoted" }

func TestMergeOfDifferentValueCodecs(t *testing.T) {
	top := topology.New("t")
	a := top.Stream[string, string]("a")
	b := top.Stream("b", topology.With[string](nil, quoted{}))
	a.Merge(b).To("plain")
	b.Merge(a).To("quoted")
	b.To("own")
	d := start(t, top)
	d.feeds(t, "a", rec(1, "k", "x"))
	d.feeds(t, "b", rec(2, "k", `"y"`))
	d.expect(t, `plain@1 k=x`, `quoted@1 k="x"`, `plain@2 k=y`, `quoted@2 k="y"`, `own@2 k="y"`)
}

func TestCodecsTravelAndAreOverridden(t *testing.T) {
	top := topology.New("t")
	s := top.Stream("in", topology.With(codec.String(), codec.Codec[string](quoted{})))
	s.Map(strings.ToUpper).To("same-type")
	s.Map(func(v string) int64 { return int64(len(v)) }).Map(func(n int64) string { return "x" }).To("default")
	s.To("value", topology.ValueCodec(codec.String()))
	s.To("both", topology.With[string, string](quoted{}, codec.String()))
	s.To("key", topology.KeyCodec[string](quoted{}))
	s.KeyBy("k", func(v string) string { return v }, topology.ValueCodec(codec.String())).To("keyed")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", `"v"`))
	d.expect(t, `same-type@1 k="V"`, `default@1 k=x`, `value@1 k=v`, `both@1 "k"=v`, `key@1 "k"="v"`, `keyed@1 v=v`)
}

func TestSplit(t *testing.T) {
	top := topology.New("t")
	to := func(topic string) func(*topology.Stream[string, string]) {
		return func(s *topology.Stream[string, string]) { s.To(topic) }
	}
	s := top.Stream[string, string]("in")
	s.Split().
		When("a", func(v string) bool { return strings.HasPrefix(v, "a") }, to("a")).
		TryWhen("key", func(c *topology.Context, k, v string) (bool, error) {
			c.AddHeader("judged", nil) // of no consequence: the record is not changed by a predicate that refuses it
			return k == "key", nil
		}, to("key")).
		Otherwise("rest", to("rest"))
	s.Split().When("b", func(v string) bool { return v == "b" }, to("b")).Drop()
	d := start(t, top)
	d.feeds(t, "in", rec(1, "key", "ax"), rec(2, "key", "x"), rec(3, "k", "b"))
	d.expect(t, "a@1 key=ax", "key@2 key=x judged:null", "rest@3 k=b", "b@3 k=b")
	if n := d.tasks["in"].task.Dropped(); n != 2 {
		t.Errorf("dropped %d, want 2", n)
	}
}

func TestKeyByWithoutCut(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.KeyBy("upper", strings.ToUpper).
		TryMap(func(c *topology.Context, k, v string) (string, error) { return k + "/" + string(c.KeyBytes()), nil }).
		TryKeyBy("twice", func(_ *topology.Context, k, v string) (string, error) { return k + k, nil }).
		To("out")
	s.To("raw")
	d := start(t, top)
	if len(d.plan.Subs) != 1 {
		t.Fatalf("%d sub-topologies", len(d.plan.Subs))
	}
	d.feeds(t, "in", rec(1, "k", "v"))
	d.expect(t, "out@1 VV=V/V", "raw@1 k=v")
}

func TestKeyByNull(t *testing.T) {
	top := topology.New("t")
	top.Stream[[]byte, []byte]("in").KeyBy("k", func(v []byte) []byte { return v }).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"), rec(2, "k", ""), rec(3, "k", "null"))
	d.expect(t, "out@1 v=v", "out@2 =", "out@3 null=null")
}

// R-CREATE-ORDER, cuts: what a KeyBy does depends on what follows it.
func TestCuts(t *testing.T) {
	id := func(v string) string { return v }
	plan := func(f func(*topology.Stream[string, string])) string {
		top := topology.New("t")
		f(top.Stream[string, string]("in"))
		p, err := top.Build()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range p.Subs {
			for _, src := range s.Sources {
				if src.Repartition != "" {
					ids = append(ids, src.Repartition)
				}
			}
		}
		return fmt.Sprint(ids)
	}
	keep := func(out topology.Emitter[string, string], r topology.Record[string, string]) error { return nil }
	for _, c := range []struct {
		name, want string
		f          func(*topology.Stream[string, string])
	}{
		{"sink", "[]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).To("out") }},
		{"count", "[a]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).Count("n") }},
		{"stateless between", "[a]", func(s *topology.Stream[string, string]) {
			s.KeyBy("a", id).Map(id).Filter(func(string) bool { return true }).Count("n")
		}},
		{"only the last of two", "[b]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).KeyBy("b", id).Count("n") }},
		{"both of two", "[a b]", func(s *topology.Stream[string, string]) {
			a := s.KeyBy("a", id)
			a.KeyBy("b", id).Count("n")
			a.Count("m")
		}},
		{"a topic ends the path", "[]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).Through("mid").Count("n") }},
		{"through a branch", "[a]", func(s *topology.Stream[string, string]) {
			s.KeyBy("a", id).Split().When("x", func(string) bool { return true },
				func(s *topology.Stream[string, string]) { s.Count("n") }).Drop()
		}},
		{"through a merge", "[a]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).Merge(s).Count("n") }},
		{"processor without store", "[]", func(s *topology.Stream[string, string]) { s.KeyBy("a", id).Process("p", keep).To("out") }},
		{"processor with store", "[a]", func(s *topology.Stream[string, string]) {
			s.KeyBy("a", id).Process("p", keep, topology.KeyValue[string, string]("kv"))
		}},
		{"behind a table", "[a]", func(s *topology.Stream[string, string]) {
			s.Count("n").ToStream().KeyBy("a", func(n int64) string { return "x" }).Count("m")
		}},
	} {
		if got := plan(c.f); got != c.want {
			t.Errorf("%s: repartitions %s, want %s", c.name, got, c.want)
		}
	}
}

func TestThrough(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").KeyBy("k", strings.ToUpper).Through("mid").Count("n").To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "a"), rec(2, "k", "a"))
	d.commits(t)
	d.expect(t, "mid@1 A=a", "mid@2 A=a", "out@2 A=2")
	if ids := []string{d.plan.Subs[0].ID, d.plan.Subs[1].ID}; fmt.Sprint(ids) != "[in n]" {
		t.Error(ids)
	}
}

// P-HEADERS: headers travel through map, repartition and sink; an operator adds one; results of aggregates have none.
func TestPHeaders(t *testing.T) {
	top := topology.New("t")
	keyed := top.Stream[string, string]("in").
		Map(strings.ToUpper).
		TryKeyBy("by", func(c *topology.Context, k, v string) (string, error) {
			c.AddHeader("c", []byte("3"))
			return v, nil
		})
	keyed.To("out")
	keyed.Count("n", topology.EveryUpdate()).To("counts")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v",
		processor.Header{Key: "a", Value: []byte("1")}, processor.Header{Key: "a", Value: []byte("2")}, processor.Header{Key: "b"}))
	d.expect(t, "out@1 V=V a:1 a:2 b:null c:3", "counts@1 V=1")
}

// What nobody uses is not decoded, and what nobody changed goes out as it came in.
func TestUnusedBytesAreNotTouched(t *testing.T) {
	top := topology.New("t")
	type ad struct{ N int }
	s := top.Stream[int64, ad]("in")
	s.To("out")
	s.Count("n").To("counts")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "no int", "no json"))
	d.commits(t)
	d.expect(t, "out@1 no int=no json", "counts@1 no int=1")

	top = topology.New("t")
	top.Stream[string, ad]("in").Filter(func(a ad) bool { return a.N > 0 }).To("out")
	d = start(t, top)
	d.feeds(t, "in", rec(1, "k", `{"N": 1, "unknown": true}`))
	d.expect(t, `out@1 k={"N": 1, "unknown": true}`)
}

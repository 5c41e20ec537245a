package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

func self(v string) string { return v }

func TestBuildErrors(t *testing.T) {
	type unencodable struct{ C chan int }
	type floats struct{ F float64 }
	sink := func(s *topology.Stream[string, string]) { s.To("out") }
	discardAll := func(topology.Emitter[string, string], topology.Record[string, string]) error { return nil }
	for _, c := range []struct {
		name    string
		declare func(*topology.Topology)
		want    []string // of each error, in order, what it contains: operator, then reason
	}{
		{"empty", func(*topology.Topology) {}, []string{"t: the topology reads no topic"}},
		{"unread source", func(top *topology.Topology) { top.Stream[string, string]("in") },
			[]string{"source(in): nothing reads"}},
		{"duplicate id", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Count("a")
			s.Reduce("a", func(a, b string) string { return a })
			s.KeyBy("a", self).To("out")
			top.Table[string, string]("other", "a")
			s.Process("p", discardAll, topology.KeyValue[string, string]("a"))
			s.Process("a", discardAll)
		}, []string{
			`a: duplicate id: a count and a reduce`, `a: duplicate id: a count and a key-by`,
			`a: duplicate id: a count and a table`, `p: duplicate id: a count and a store`,
			`a: duplicate id: a count and a process`,
		}},
		// R-BRANCH-NAME: two equal operators on two branches need names of their own.
		{"R-BRANCH-NAME", func(top *topology.Topology) {
			count := func(s *topology.Stream[string, string]) { s.Count("n") }
			top.Stream[string, string]("in").Split().
				When("a", func(string) bool { return true }, count).
				When("b", func(string) bool { return true }, count).Drop()
		}, []string{`n: duplicate id`}},
		{"ids that Kafka takes for the same", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Count("a.b")
			s.Count("a_b")
		}, []string{`a_b: id "a_b" collides with "a.b"`}},
		{"invalid ids", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Count("")
			s.Count("with space")
			s.Count("..")
			s.Count("g2-n")
			s.Count(strings.Repeat("x", 181))
			s.Count("g2n") // fine
		}, []string{`operator id "" is empty`, `contains ' '`, `is not a topic name`, `generation of an app`, `longer than 180`}},
		{"invalid topics", func(top *topology.Topology) {
			s := top.Stream[string, string]("a/b")
			s.To("")
			s.To("__internal")
			s.To("app-x-repartition")
			s.Through("app-x-changelog").To("ok")
			s.To("app-x-progress")
			s.To(strings.Repeat("x", 250))
		}, []string{
			`source(a/b): topic "a/b" contains '/'`, `sink(): topic "" is empty`, `sink(__internal): topic "__internal" is reserved`,
			`-repartition are internal`, `sink(app-x-changelog): `, `source(app-x-changelog): `, `-progress are internal`, `longer than 249`,
		}},
		{"cycle through a topic", func(top *topology.Topology) { top.Stream[string, string]("in").Map(self).To("in") },
			[]string{`sink(in): the topology is a cycle: topic in -> in`}},
		{"cycle through two topics", func(top *topology.Topology) {
			top.Stream[string, string]("a").KeyBy("by", self).Count("n").Map(func(int64) string { return "" }).To("b")
			top.Stream[string, string]("b").Through("c").To("a")
		}, []string{`sink(a): the topology is a cycle: topic a -> b -> c -> a`}},
		{"missing codec", func(top *topology.Topology) {
			u := top.Stream[string, string]("in").Map(func(string) unencodable { return unencodable{} })
			u.Filter(func(unencodable) bool { return true }).Map(func(unencodable) string { return "" }).To("fine")
			u.To("out")
			u.KeyBy("only-sets-the-key", func(unencodable) string { return "" }).Map(func(unencodable) string { return "" }).To("fine")
			u.KeyBy("cut", func(unencodable) string { return "" }).Count("n")
			u.Reduce("last", func(a, b unencodable) unencodable { return b })
			top.Stream[chan int, string]("keys").To("fine")
		}, []string{
			"sink(out): no codec for the value", "cut: no codec for the value", "last: no codec for the stored value",
			"source(keys): no codec for the key",
		}},
		{"unfit keys", func(top *topology.Topology) {
			s := top.Stream[floats, string]("in")
			s.To("fine")
			s.Count("n")
			s.KeyBy("by", func(string) map[string]int { return nil }).To("out")
		}, []string{"n: the key type is not fit", "by: the key type is not fit"}},
		{"unknown store", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Count("n")
			s.Process("p", discardAll, topology.ReadOnly[string, string]("none"), topology.ReadOnly[string, string]("n"))
		}, []string{`p: store "n" holds string/int64, not string/string`, `p: unknown store "none"`}},
		{"differing settings of a topic", func(top *topology.Topology) {
			top.Stream[string, string]("types").To("out")
			top.Stream[string, int64]("types").To("out")
			top.Stream[string, string]("codecs").To("out")
			top.Stream("codecs", topology.With[string](nil, quoted{})).To("out")
			top.Stream("alike", topology.With[string](nil, quoted{})).To("out")
			top.Stream("alike", topology.With[string](nil, quoted{})).To("out")
			top.Stream("two", topology.With[string](nil, quoted{}), topology.With[string](nil, quoted{})).To("out")
		}, []string{
			`source(types): read with different settings: as string/string and as string/int64`,
			`source(codecs): read with different settings: codecs string/string and string/quoted`,
			`source(two): 2 settings`,
		}},
		{"split", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Split().When("a", func(string) bool { return true }, sink)
			s.Split().Otherwise("rest", sink)
			p := s.Split().When("a", func(string) bool { return true }, sink).When("a", nil, sink).When("", func(string) bool { return true }, nil)
			p.Drop()
			p.Otherwise("rest", sink)
		}, []string{
			"split#1: records no branch accepts", "split#2: a split without a branch", "split#3: Otherwise and Drop end a split",
			"branch(a): split#3 has two branches", "branch(a): the predicate is nil",
			"branch(): a branch of split#3 has no name", "branch(): the function that declares",
		}},
		{"nil functions", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Filter(nil).To("out")
			s.Map[string](nil).To("out")
			s.KeyBy[string]("by", nil).To("out")
			s.Sum[int]("sum", nil)
			s.Aggregate("agg", topology.Folding[int, string]{})
			s.Process[string, string]("p", nil)
			top.Table[string, string]("table", "table").Map[int](nil).Filter(nil)
		}, []string{"filter#1: the predicate is nil", "map#1: ", "by: ", "sum: ", "agg: the folding is nil", "p: ", "map#2: ", "filter#2: "}},
		{"options", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			s.Count("n", topology.Partitions(3), nil)
			s.KeyBy("by", self, topology.EveryUpdate(), topology.Partitions(0)).To("out")
			s.To("out", topology.ValueCodec(codec.Int64()))
		}, []string{
			"n: an option is nil", "n: option Partitions has no meaning", "by: Partitions(0)", "by: option EveryUpdate",
			`sink(out): the value codec is a codec of "int64", which is not for string`,
		}},
		{"handles", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			out, again := topology.Output[string, string]("side"), topology.Output[string, string]("side")
			s.Process("p", discardAll, out, again, nil, topology.Output[string, string](""))
			s.Process("q", discardAll, out).Side(topology.Output[string, string]("stray"))
			foreign := topology.KeyValue[string, string]("kv")
			topology.New("other").Stream[string, string]("in").Process("p", discardAll, foreign)
			s.Process("r", discardAll, foreign)
		}, []string{
			`p: a handle is nil`, `p: an output has no name`, `p: output "" leads nowhere`, `p: output "side" leads nowhere`, `p: two outputs are called "side"`,
			`q: output "side" is already one of p`, `q: output "stray" is not listed`, `r: store kv belongs to another topology, "other"`,
		}},
		{"a processor may change the key", func(top *topology.Topology) {
			s := top.Stream[string, string]("in")
			p := s.Process("p", discardAll)
			p.Map(self).Count("n")
			p.KeyBy("by", self).Count("fine")
			p.Through("mid").Count("fine-too")
			s.Process("keeps", discardAll, topology.KeepsKey()).Count("also-fine")
			s.Process("wrong", func(topology.Emitter[int64, string], topology.Record[string, string]) error { return nil },
				topology.KeepsKey()).To("out")
		}, []string{`n: process "p" may have changed the key`, `wrong: promises to keep keys, but takes string and emits int64`}},
		{"A-MAX-RETRACT: retractions into a function that cannot take a value back", func(top *topology.Topology) {
			in := top.Stream[string, int64]("in").Timestamps(nil)
			p := in.Window(window.Tumbling(time.Minute), window.Retracting()).Sum("sums", func(v int64) int64 { return v })
			s := p.Map(func(p topology.Pane[string, int64]) int64 { return p.Value })
			s.KeyBy("by", func(v int64) string { return "all" }).Aggregate("max", topology.Fold(func(a, v int64) int64 { return max(a, v) }))
			s.KeyBy("by-2", func(v int64) string { return "all" }).Window(window.Tumbling(time.Hour)).Max("max-2", func(v int64) int64 { return v })
		}, []string{`max: its input retracts results: the folding needs Undo`, `max-2: its input retracts results: the folding needs Undo`}},
		{"merge of different key encodings", func(top *topology.Topology) {
			a := top.Stream[string, string]("a")
			b := top.Stream("b", topology.With[string, string](quoted{}, nil))
			a.Merge(b).To("out")
		}, []string{`merge#1: keys of source(a) are encoded as "string", those of`}},
		{"a stream of another topology", func(top *topology.Topology) {
			other := topology.New("other").Stream[string, string]("in")
			top.Stream[string, string]("in").Merge(other).To("out")
		}, []string{`merge#1: continues a stream or table of another topology, "other"`}},
		{"sub-topologies that share a name", func(top *topology.Topology) {
			top.Stream[string, string]("orders").KeyBy("orders", self).Count("z")
		}, []string{`orders: operator id "orders" names a sub-topology, and so does a topic`}},
		{"topics that Kafka takes for the same", func(top *topology.Topology) {
			top.Stream[string, string]("a.b").To("out")
			top.Stream[string, string]("a_b").To("out")
		}, []string{`topics "a.b" and "a_b"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := topology.New("t")
			c.declare(top)
			plan, err := top.Build()
			if err == nil {
				t.Fatalf("built:\n%s", plan.Describe())
			}
			var got []string
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var b *topology.BuildError
				if !errors.As(e, &b) || b.Operator == "" || b.Reason == "" {
					t.Errorf("%v is not a BuildError with operator and reason", e)
				}
				got = append(got, e.Error())
			}
			for i := range max(len(got), len(c.want)) {
				switch {
				case i >= len(got):
					t.Errorf("missing: %s", c.want[i])
				case i >= len(c.want):
					t.Errorf("unexpected: %s", got[i])
				case !strings.Contains(got[i], c.want[i]):
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
		})
	}
}

func TestDeclaringAfterBuild(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.To("out")
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := plan.Describe()
	s.To("more")
	if plan.Describe() != before {
		t.Error("the plan has changed")
	}
	if _, err := top.Build(); err == nil || !strings.Contains(err.Error(), "declared after Build") {
		t.Errorf("error %v", err)
	}
}

// A stream that meets a re-keyed copy of itself is no cycle, although its sub-topology reads what it writes.
func TestSelfMeetingIsNoCycle(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.KeyBy("by", self).Merge(s).Count("n").To("out")
	d := start(t, top)
	if len(d.plan.Subs) != 1 {
		t.Fatal(d.plan.Describe())
	}
	d.feeds(t, "in", rec(1, "a", "b"))
	d.commits(t)
	d.expect(t, "out@1 a=1", "out@1 b=1")
	counts, err := topology.CheckPartitions(d.plan, map[string]int{"in": 4})
	if err != nil || counts.Repartitions["by"] != 4 || counts.Subs["by"] != 4 {
		t.Errorf("%v %v", counts, err)
	}
}

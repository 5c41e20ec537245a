package topology_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/topology"
)

// The examples run their topology with show, a small driver: it feeds the keys and values it is given into a topic, with
// the timestamps 0, 1, 2 …, commits, and prints what comes out as topic@time key=value.

func Example() {
	t := topology.New("words")
	t.Stream[string, string]("lines").
		FlatMap(func(line string, emit func(string)) {
			for _, word := range strings.Fields(line) {
				emit(word)
			}
		}).
		KeyBy("by-word", func(word string) string { return word }).
		Count("counts").
		To("word-counts")

	plan, err := t.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Describe())
	// Output:
	// topology words
	//
	// sub-topology lines
	//   reads  topic lines
	//   writes repartition by-word
	//   source(lines): string, string as string, string
	//   flat-map#1 <- source(lines): string, string
	//   key-by by-word <- flat-map#1: string, string as string, string cut
	//
	// sub-topology by-word
	//   reads  repartition by-word
	//   writes topic word-counts
	//   store  counts: key-value string, int64, changelog
	//   count counts <- by-word: string, int64 store=counts
	//   sink(word-counts) <- counts as string, int64
}

func ExampleTopology_Build() {
	t := topology.New("mistakes")
	s := t.Stream[string, string]("in")
	s.Count("totals")
	s.Map(func(v string) chan int { return nil }).To("out")
	s.Reduce("totals", func(a, b string) string { return a + b })

	_, err := t.Build()
	fmt.Println(err)
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var b *topology.BuildError
		fmt.Println(errors.As(e, &b), b.Operator)
	}
	// Output:
	// topology: sink(out): no codec for the value: codec: chan int: chan int cannot be stored: unsupported type
	// topology: totals: duplicate id: a count and a reduce are both called "totals"
	// true sink(out)
	// true totals
}

func ExampleTopology_Stream() {
	t := topology.New("example")
	t.Stream[string, string]("in").To("out")
	show(os.Stdout, t, "in", "key", "value")
	// Output:
	// out@0 key=value
}

func ExampleWith() {
	t := topology.New("example")
	t.Stream("in", topology.With(codec.String(), codec.Bytes())).
		Map(func(v []byte) string { return fmt.Sprint(len(v)) }).
		To("out")
	show(os.Stdout, t, "in", "key", "value")
	// Output:
	// out@0 key=5
}

func ExampleTopology_Table() {
	t := topology.New("example")
	t.Table[string, string]("in", "latest").To("out")
	show(os.Stdout, t, "in", "a", "1", "a", "2", "a", "null", "a", "null")
	// Output:
	// out@0 a=1
	// out@1 a=2
	// out@2 a=null
}

func ExampleStream_Filter() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Filter(func(v string) bool { return len(v) > 1 }).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "b", "xyz")
	// Output:
	// out@1 b=xyz
}

func ExampleStream_TryFilter() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryFilter(func(c *topology.Context, k, v string) (bool, error) { return c.Offset() > 0 && k != v, nil }).
		To("out")
	show(os.Stdout, t, "in", "a", "b", "b", "b", "b", "c")
	// Output:
	// out@2 b=c
}

func ExampleStream_Map() {
	t := topology.New("example")
	t.Stream[string, string]("in").Map(strings.ToUpper).To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// out@0 a=X
}

func ExampleStream_TryMap() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryMap(func(c *topology.Context, k, v string) (int64, error) {
			c.AddHeader("was", []byte(v))
			return strconv.ParseInt(v, 10, 64)
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "12", "b", "twelve")
	// Output:
	// processor: map#1: user: strconv.ParseInt: parsing "twelve": invalid syntax
}

func ExampleStream_FlatMap() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		FlatMap(func(v string, emit func(string)) {
			for part := range strings.SplitSeq(v, ",") {
				emit(part)
			}
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "x,y")
	// Output:
	// out@0 a=x
	// out@0 a=y
}

func ExampleStream_TryFlatMap() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryFlatMap(func(c *topology.Context, k, v string, emit func(string) error) error {
			for range len(v) {
				if err := emit(k); err != nil {
					return err
				}
			}
			return nil
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "xy")
	// Output:
	// out@0 a=a
	// out@0 a=a
}

func ExampleStream_Peek() {
	t := topology.New("example")
	t.Stream[string, string]("in").Peek(func(v string) { fmt.Println("saw", v) })
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// saw x
}

func ExampleStream_TryPeek() {
	t := topology.New("example")
	t.Stream[string, string]("in").TryPeek(func(c *topology.Context, k, v string) error {
		fmt.Println(c.Topic(), c.Partition(), c.Offset(), k, v)
		return nil
	})
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// in 0 0 a x
}

func ExampleStream_Merge() {
	t := topology.New("example")
	s := t.Stream[string, string]("in")
	s.Merge(s.Map(strings.ToUpper)).To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// out@0 a=X
	// out@0 a=x
}

func ExampleStream_Split() {
	t := topology.New("example")
	t.Stream[string, string]("in").Split().
		When("long", func(v string) bool { return len(v) > 1 }, func(s *topology.Stream[string, string]) { s.To("long") }).
		Otherwise("rest", func(s *topology.Stream[string, string]) { s.To("short") })
	show(os.Stdout, t, "in", "a", "x", "b", "xyz")
	// Output:
	// short@0 a=x
	// long@1 b=xyz
}

func ExampleSplit_Drop() {
	t := topology.New("example")
	t.Stream[string, string]("in").Split().
		When("long", func(v string) bool { return len(v) > 1 }, func(s *topology.Stream[string, string]) { s.To("long") }).
		Drop()
	show(os.Stdout, t, "in", "a", "x", "b", "xyz")
	// Output:
	// long@1 b=xyz
}

func ExampleSplit_TryWhen() {
	t := topology.New("example")
	t.Stream[string, string]("in").Split().
		TryWhen("own", func(c *topology.Context, k, v string) (bool, error) { return k == v, nil },
			func(s *topology.Stream[string, string]) { s.To("own") }).
		Drop()
	show(os.Stdout, t, "in", "a", "a", "b", "c")
	// Output:
	// own@0 a=a
}

func ExampleStream_KeyBy() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		KeyBy("first-letter", func(v string) string { return v[:1] }).
		Count("words").
		To("out")
	show(os.Stdout, t, "in", "a", "apple", "b", "avocado", "c", "banana")
	// Output:
	// out@1 a=2
	// out@2 b=1
}

func ExampleStream_TryKeyBy() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryKeyBy("pair", func(c *topology.Context, k, v string) (string, error) { return k + "/" + v, nil }).
		To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// out@0 a/x=x
}

func ExampleStream_Count() {
	t := topology.New("example")
	t.Stream[string, string]("in").Count("n").To("out")
	show(os.Stdout, t, "in", "a", "", "b", "", "a", "")
	// Output:
	// out@2 a=2
	// out@1 b=1
}

func ExampleEveryUpdate() {
	t := topology.New("example")
	t.Stream[string, string]("in").Count("n", topology.EveryUpdate()).To("out")
	show(os.Stdout, t, "in", "a", "", "b", "", "a", "")
	// Output:
	// out@0 a=1
	// out@1 b=1
	// out@2 a=2
}

func ExampleStream_Sum() {
	t := topology.New("example")
	t.Stream[string, string]("in").Sum("lengths", func(v string) int64 { return int64(len(v)) }).To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "xyz")
	// Output:
	// out@1 a=4
}

func ExampleStream_Min() {
	t := topology.New("example")
	t.Stream[string, string]("in").Min("first", func(v string) string { return v }).To("out")
	show(os.Stdout, t, "in", "a", "m", "a", "b", "a", "x")
	// Output:
	// out@2 a=b
}

func ExampleStream_Max() {
	t := topology.New("example")
	t.Stream[string, string]("in").Max("last", func(v string) string { return v }).To("out")
	show(os.Stdout, t, "in", "a", "m", "a", "x", "a", "b")
	// Output:
	// out@2 a=x
}

func ExampleStream_Reduce() {
	t := topology.New("example")
	t.Stream[string, string]("in").Reduce("joined", func(a, b string) string { return a + "+" + b }).To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y", "a", "z")
	// Output:
	// out@2 a=x+y+z
}

// Stats is an aggregate. Its zero value is the empty one.
type Stats struct{ N, Sum int64 }

// Add returns the statistics with one value more.
func (s Stats) Add(v int64) Stats { return Stats{s.N + 1, s.Sum + v} }

// AddInPlace is Add for those who would rather not copy.
func (s *Stats) AddInPlace(v int64) { s.N, s.Sum = s.N+1, s.Sum+v }

// Merge returns the statistics of both.
func (s Stats) Merge(o Stats) Stats { return Stats{s.N + o.N, s.Sum + o.Sum} }

// Remove takes a value out again.
func (s Stats) Remove(v int64) Stats { return Stats{s.N - 1, s.Sum - v} }

func number(v string) int64 { return int64(len(v)) }

func ExampleStream_Aggregate() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Map(number).
		Aggregate("stats", topology.Fold(Stats.Add).Merge(Stats.Merge)).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "xyz")
	// Output:
	// out@1 a={"N":2,"Sum":4}
}

func ExampleFoldInto() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Map(number).
		Aggregate("stats", topology.FoldInto((*Stats).AddInPlace).Undo(Stats.Remove)).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "xyz")
	// Output:
	// out@1 a={"N":2,"Sum":4}
}

func ExampleStream_TryAggregate() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		TryAggregate("last", func(c *topology.Context, k string, acc string, v string) (string, error) {
			return fmt.Sprintf("%s@%d", v, c.Timestamp()), nil
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y")
	// Output:
	// out@1 a=y@1
}

func ExampleStream_Through() {
	t := topology.New("example")
	t.Stream[string, string]("in").Through("middle").Map(strings.ToUpper).To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// middle@0 a=x
	// out@0 a=X
}

func ExampleStream_Process() {
	last := topology.KeyValue[string, string]("last")
	repeated := topology.Output[string, string]("repeated")

	t := topology.New("example")
	p := t.Stream[string, string]("in").
		Process("changes", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			before, ok, err := last.Get(out, r.Key)
			if err != nil {
				return err
			}
			if ok && before == r.Value {
				repeated.Emit(out, r.Key, r.Value)
				return nil
			}
			out.Emit(r.Key, before+"->"+r.Value)
			return last.Put(out, r.Key, r.Value)
		}, last, repeated)
	p.To("changes")
	p.Side(repeated).To("repeated")
	show(os.Stdout, t, "in", "a", "x", "a", "x", "a", "y")
	// Output:
	// changes@0 a=->x
	// repeated@1 a=x
	// changes@2 a=x->y
}

// numbering is a processor with memory of its own, which is lost with its task.
type numbering struct{ n int }

func (p *numbering) Process(out topology.Emitter[string, string], r topology.Record[string, string]) error {
	p.n++
	out.Emit(r.Key, fmt.Sprint(p.n, " ", r.Value))
	return nil
}

func ExampleStream_ProcessWith() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		ProcessWith("numbers", func() topology.Processor[string, string, string, string] { return new(numbering) }).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "b", "y")
	// Output:
	// out@0 a=1 x
	// out@1 b=2 y
}

func ExampleReadOnly() {
	counts := topology.ReadOnly[string, int64]("counts")

	t := topology.New("example")
	s := t.Stream[string, string]("in")
	s.Count("counts")
	s.Process("nth", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
		n, _, err := counts.Get(out, r.Key)
		out.Emit(r.Key, fmt.Sprint(r.Value, " is number ", n))
		return err
	}, counts).To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y")
	// Output:
	// out@0 a=x is number 1
	// out@1 a=y is number 2
}

func ExampleKeyValueStore_Scan() {
	words := topology.KeyValue[string, string]("words")

	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("all", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if err := words.Put(out, r.Key, r.Value); err != nil {
				return err
			}
			var all []string
			err := words.Scan(out, nil, nil, func(k, v string) bool {
				all = append(all, k+"="+v)
				return true
			})
			out.Emit("all", strings.Join(all, " "))
			return err
		}, words).
		To("out")
	show(os.Stdout, t, "in", "b", "x", "a", "y")
	// Output:
	// out@0 all=b=x
	// out@1 all=a=y b=x
}

func ExampleKeepsKey() {
	t := topology.New("example")
	t.Stream[string, string]("in").
		Process("double", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			out.Emit(r.Key, r.Value)
			out.Emit(r.Key, r.Value)
			return nil
		}, topology.KeepsKey()).
		Count("n"). // without KeepsKey this would need a KeyBy
		To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// out@0 a=2
}

func ExampleTable_Filter() {
	t := topology.New("example")
	t.Table[string, string]("in", "all").
		Filter(func(v string) bool { return len(v) > 1 }).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "xyz", "a", "y", "a", "z")
	// Output:
	// out@1 a=xyz
	// out@2 a=null
}

func ExampleTable_Map() {
	t := topology.New("example")
	t.Table[string, string]("in", "all").Map(strings.ToUpper).To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "null")
	// Output:
	// out@0 a=X
	// out@1 a=null
}

func ExampleTable_ToStream() {
	t := topology.New("example")
	t.Table[string, string]("in", "all").ToStream().Count("updates").To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y", "a", "null")
	// Output:
	// out@1 a=2
}

func ExampleTable_Changes() {
	t := topology.New("example")
	t.Table[string, string]("in", "all").
		Changes(func(c topology.Change[string, string]) (string, bool) {
			if !c.Has {
				return c.Old + " is gone", true
			}
			return c.Old + "->" + c.New, c.Had
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "x", "a", "y", "a", "null")
	// Output:
	// out@1 a=x->y
	// out@2 a=y is gone
}

func ExampleTable_TryChanges() {
	t := topology.New("example")
	t.Table[string, string]("in", "all").
		TryChanges(func(c *topology.Context, ch topology.Change[string, string]) (string, bool, error) {
			return fmt.Sprintf("%s at %d", ch.New, c.Timestamp()), ch.Has, nil
		}).
		To("out")
	show(os.Stdout, t, "in", "a", "x")
	// Output:
	// out@0 a=x at 0
}

func ExampleTable_Through() {
	t := topology.New("example")
	t.Stream[string, string]("in").Count("n").Through("counts", "counts-again").Map(func(n int64) string {
		return fmt.Sprint("seen ", n)
	}).To("out")
	show(os.Stdout, t, "in", "a", "", "a", "")
	// Output:
	// counts@1 a=2
	// out@1 a=seen 2
}

func ExampleCheckPartitions() {
	t := topology.New("example")
	left := t.Stream[string, string]("left")
	right := t.Stream[string, string]("right").KeyBy("re-keyed", func(v string) string { return v })
	left.Merge(right).Count("n")
	plan, err := t.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	counts, err := topology.CheckPartitions(plan, map[string]int{"left": 4, "right": 3})
	fmt.Println(counts.Repartitions, counts.Subs, err)
	// Output:
	// map[re-keyed:4] map[n:4 right:3] <nil>
}

func ExamplePlan_Mermaid() {
	t := topology.New("example")
	t.Stream[string, string]("in").Map(strings.ToUpper).To("out")
	plan, err := t.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Mermaid())
	// Output:
	// flowchart TD
	//   t1[("topic in")]
	//   t2[("topic out")]
	//   subgraph s1 ["in"]
	//     n2["map#35;1"]
	//   end
	//   t1 --> n2
	//   n2 --> t2
}

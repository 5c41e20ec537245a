package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

func TestCheckPartitions(t *testing.T) {
	in := func(top *topology.Topology, topic string) *topology.Stream[string, string] {
		return top.Stream[string, string](topic)
	}
	for _, c := range []struct {
		name    string
		declare func(*topology.Topology)
		counts  map[string]int
		want    string // subs and repartitions, or the error
	}{
		{"one topic", func(top *topology.Topology) { in(top, "a").Count("n") },
			map[string]int{"a": 5}, "map[n:5] map[]"},
		// R-CREATE-ORDER: a sub-topology fed by an internal topic has the count of what is upstream.
		{"R-CREATE-ORDER", func(top *topology.Topology) { in(top, "a").KeyBy("by", self).Count("n") },
			map[string]int{"a": 5}, "map[a:5 by:5] map[by:5]"},
		{"declared", func(top *topology.Topology) {
			in(top, "a").KeyBy("by", self, topology.Partitions(7)).Count("n")
		}, map[string]int{"a": 5}, "map[a:5 by:7] map[by:7]"},
		{"chain", func(top *topology.Topology) {
			in(top, "a").Merge(in(top, "b")).KeyBy("z", self).Count("n").
				ToStream().KeyBy("y", func(int64) string { return "" }).Count("m")
		}, map[string]int{"a": 3, "b": 8}, "map[a:8 m:8 n:8] map[y:8 z:8]"},
		// R-JOIN-COUNT: a repartition topic takes the count of the topic it meets.
		{"R-JOIN-COUNT", func(top *topology.Topology) {
			in(top, "left").Merge(in(top, "right").KeyBy("by", self)).Count("n")
		}, map[string]int{"left": 4, "right": 3}, "map[by:4 right:3] map[by:4]"},
		{"two repartitions that meet", func(top *topology.Topology) {
			in(top, "a").KeyBy("x", self).Merge(in(top, "b").KeyBy("y", self)).Count("n")
		}, map[string]int{"a": 2, "b": 9}, "map[a:2 b:9 n:9] map[x:9 y:9]"},
		{"one of them declared", func(top *topology.Topology) {
			in(top, "a").KeyBy("x", self, topology.Partitions(6)).Merge(in(top, "b").KeyBy("y", self)).Count("n")
		}, map[string]int{"a": 2, "b": 9}, "map[a:2 b:9 n:6] map[x:6 y:6]"},
		{"stateless merge of different counts", func(top *topology.Topology) { in(top, "a").Merge(in(top, "b")).To("out") },
			map[string]int{"a": 2, "b": 9}, "map[a:9] map[]"},
		{"a store beside such a merge", func(top *topology.Topology) {
			in(top, "a").Count("n")
			in(top, "a").Merge(in(top, "b")).To("out")
		}, map[string]int{"a": 2, "b": 9}, "map[n:9] map[]"},
		{"topics that meet below a store", func(top *topology.Topology) { in(top, "a").Merge(in(top, "b")).Count("n") },
			map[string]int{"a": 2, "b": 9}, "n: partition counts do not match: topic a has 2, topic b has 9"},
		{"topics that meet through a repartition", func(top *topology.Topology) {
			r := in(top, "c").KeyBy("by", self)
			in(top, "a").Merge(r).Count("n")
			in(top, "b").Merge(r).Count("m")
		}, map[string]int{"a": 2, "b": 9, "c": 1}, "m, n: partition counts do not match: topic a has 2, topic b has 9"},
		{"declared against a topic", func(top *topology.Topology) {
			in(top, "a").Merge(in(top, "b").KeyBy("by", self, topology.Partitions(3))).Count("n")
		}, map[string]int{"a": 2, "b": 9}, "n: partition counts do not match: repartition by has 3, topic a has 2"},
		{"missing topics", func(top *topology.Topology) { in(top, "a").Merge(in(top, "b")).To("out") },
			map[string]int{"a": 0}, "source(a): topic does not exist|source(b): topic does not exist"},
		{"meeting itself, with a larger writer later in the order", func(top *topology.Topology) {
			a := in(top, "a")
			x := a.KeyBy("x", self)
			a.Merge(x.Merge(in(top, "big")).Map(self).KeyBy("y", self)).Process("p",
				func(topology.Emitter[string, string], topology.Record[string, string]) error { return nil }).To("out")
			x.Count("n")
		}, map[string]int{"a": 2, "big": 5}, "map[n:5] map[x:5]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := topology.New("t")
			c.declare(top)
			plan := build(t, top)
			got, err := topology.CheckPartitions(plan, c.counts)
			if err != nil {
				for _, want := range strings.Split(c.want, "|") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want %q", err, want)
					}
				}
				if !errors.Is(err, topology.ErrPartitionMismatch) && !errors.Is(err, topology.ErrNoTopic) {
					t.Errorf("error %v is neither", err)
				}
				return
			}
			if s := fmt.Sprint(got.Subs, got.Repartitions); s != c.want {
				t.Errorf("got  %s\nwant %s\n%s", s, c.want, plan.Describe())
			}
		})
	}
}

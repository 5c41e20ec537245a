package topology_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidemark/tidemark/topology"
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

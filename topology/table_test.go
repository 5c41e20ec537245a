package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

func TestTable(t *testing.T) {
	top := topology.New("t")
	top.Table[string, string]("in", "table").To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "null"), rec(2, "k", "v"), rec(1, "k", "older"), rec(5, "k", "null"), rec(6, "k", "null"))
	d.expect(t, "out@2 k=v", "out@1 k=older", "out@5 k=null")
	d.commits(t)
	d.expect(t)
}

func TestTableFilter(t *testing.T) {
	top := topology.New("t")
	table := top.Table[string, string]("in", "table")
	table.Filter(func(v string) bool { return v < "m" }).To("short")
	table.TryFilter(func(c *topology.Context, k, v string) (bool, error) { return k+v < "km", nil }).To("long")
	d := start(t, top)
	d.feeds(t, "in",
		rec(1, "k", "z"),    // never in it: nothing
		rec(2, "k", "a"),    // enters
		rec(3, "k", "b"),    // changes
		rec(4, "k", "z"),    // leaves
		rec(5, "k", "y"),    // still out
		rec(6, "k", "null")) // deleted while out
	d.expect(t, "short@2 k=a", "long@2 k=a", "short@3 k=b", "long@3 k=b", "short@4 k=null", "long@4 k=null")
}

func TestTableMap(t *testing.T) {
	top := topology.New("t")
	table := top.Table[string, string]("in", "table")
	table.Map(strings.ToUpper).To("short")
	table.TryMap(func(c *topology.Context, k, v string) (string, error) { return k + v, nil }).To("long")
	table.Map(func(v string) []byte { // null deletes
		if v == "b" {
			return nil
		}
		return []byte(v)
	}).Filter(func([]byte) bool { return true }).To("null")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "b"), rec(2, "k", "a"), rec(3, "k", "b"), rec(4, "k", "null"))
	d.expect(t,
		"short@1 k=B", "long@1 k=kb",
		"short@2 k=A", "long@2 k=ka", "null@2 k=a",
		"short@3 k=B", "long@3 k=kb", "null@3 k=null",
		"short@4 k=null", "long@4 k=null")
}

func TestToStreamAndChanges(t *testing.T) {
	top := topology.New("t")
	table := top.Table[string, string]("in", "table")
	table.ToStream().To("stream")
	change := func(c topology.Change[string, string]) (string, bool) {
		return fmt.Sprintf("%s:%s(%t)->%s(%t)", c.Key, c.Old, c.Had, c.New, c.Has), c.New != "quiet"
	}
	table.Changes(change).To("changes")
	table.TryChanges(func(_ *topology.Context, c topology.Change[string, string]) (string, bool, error) {
		r, ok := change(c)
		return r, ok, nil
	}).To("try")
	top.Table[string, []byte]("bytes", "bytes").ToStream().To("nullable")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "a"), rec(2, "k", "quiet"), rec(3, "k", "null"))
	d.expect(t,
		"stream@1 k=a", "changes@1 k=k:(false)->a(true)", "try@1 k=k:(false)->a(true)",
		"stream@2 k=quiet",
		"changes@3 k=k:quiet(true)->(false)", "try@3 k=k:quiet(true)->(false)")
	d.feeds(t, "bytes", rec(1, "k", "a"), rec(2, "k", "null"))
	d.expect(t, "nullable@1 k=a", "nullable@2 k=null")
}

// Under an aggregate that holds results back, a change is from commit to commit.
func TestChangesOfAHeldBackAggregate(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Count("n").
		Map(func(n int64) int64 { return 10 * n }).
		Changes(func(c topology.Change[string, int64]) (string, bool) {
			return fmt.Sprintf("%d->%d", c.Old, c.New), true
		}).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", ""), rec(1, "k", ""))
	d.commits(t)
	d.feeds(t, "in", rec(1, "k", ""), rec(1, "k", ""), rec(1, "k", ""))
	d.commits(t)
	d.expect(t, "out@1 k=0->20", "out@1 k=20->50")
}

func TestTableThrough(t *testing.T) {
	top := topology.New("t")
	top.Table[string, string]("in", "first").
		Filter(func(v string) bool { return v != "no" }).
		Through("mid", "second").
		Map(strings.ToUpper).
		To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "yes"), rec(2, "k", "no"), rec(3, "k", "no"))
	d.expect(t, "mid@1 k=yes", "out@1 k=YES", "mid@2 k=null", "out@2 k=null")
}

func TestStreamAndTableShareASource(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Count("n").To("counts")
	top.Table[string, string]("in", "table").To("out")
	d := start(t, top)
	if len(d.plan.Subs) != 1 || len(d.plan.Subs[0].Sources) != 1 {
		t.Fatal(d.plan.Describe())
	}
	d.feeds(t, "in", rec(1, "k", "v"))
	d.commits(t)
	d.expect(t, "out@1 k=v", "counts@1 k=1")
	if err := d.feed("in", rec(1, "k", "null")); err == nil {
		t.Error("a null in a stream of strings was accepted")
	}
}

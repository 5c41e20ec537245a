package topology_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// What was combined before an abort is gone: the records come again.
func TestPreAggregateAbort(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").KeyBy("by", self).Count("n", topology.PreAggregate()).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "a"), rec(2, "k", "a"), rec(3, "k", "a"))
	d.abort(t)
	d.feeds(t, "in", rec(1, "k", "a"), rec(2, "k", "a"), rec(3, "k", "a"))
	d.commits(t)
	d.expect(t, "out@3 a=3")
}

// Records of one key are combined as far as they belong to the same windows.
func TestPreAggregateWindows(t *testing.T) {
	for name, w := range map[string]window.Window{
		"tumbling": window.Tumbling(10 * time.Millisecond), "hopping": window.Hopping(10*time.Millisecond, 5*time.Millisecond),
		"day": window.Day(time.UTC),
	} {
		results := map[bool][]string{}
		for _, pre := range []bool{false, true} {
			var opts []topology.Option
			if pre {
				opts = append(opts, topology.PreAggregate())
			}
			top := topology.New("t")
			top.Stream[string, string]("in").
				Timestamps(nil, watermark.OutOfOrderness(48*time.Hour)).
				KeyBy("by", self).
				Window(w).
				Count("n", opts...).
				Map(pane[int64]).
				To("out")
			d := start(t, top)
			day := (24 * time.Hour).Milliseconds()
			d.feeds(t, "in", rec(1, "k", "a"), rec(12, "k", "a"), rec(3, "k", "b"), rec(4, "k", "a"), rec(7, "k", "a"),
				rec(-3, "k", "a"), rec(day+1, "k", "a"))
			d.commits(t)
			d.feeds(t, "in", rec(10*day, "k", "z"))
			d.commits(t)
			results[pre] = d.panes()
		}
		if got, want := results[true], results[false]; len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("%s: combined\n%q, one by one\n%q", name, got, want)
		}
	}
}

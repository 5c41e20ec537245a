package tidemarktest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// A-PREAGG-FLUSH: what is combined before the repartition goes out with the commit. A crash in between loses nothing and
// counts nothing twice, and no record gets late by waiting.
func TestPreAggregate(t *testing.T) {
	for _, pre := range []bool{true, false} {
		for _, crash := range []bool{true, false} {
			t.Run(fmt.Sprintf("combine=%v,crash=%v", pre, crash), func(t *testing.T) {
				var opts []topology.Option
				if pre {
					opts = append(opts, topology.PreAggregate())
				}
				top := topology.New("t")
				up := top.Stream[string, string]("in").
					Timestamps(nil, watermark.OutOfOrderness(5*time.Millisecond)).
					KeyBy("k", strings.ToUpper)
				up.Window(window.Hopping(10*time.Millisecond, 5*time.Millisecond)).
					Sum("n", func(string) int64 { return 1 }, opts...).
					Map(func(p topology.Pane[string, int64]) string { return fmt.Sprint(p.Bounds, p.Value, p.Timing) }).
					To("out")
				d := tidemarktest.New(t, top, tidemarktest.Options{Partitions: 1})
				in := tidemarktest.Input[string, string](d, "in")
				out := tidemarktest.Output[string, string](d, "out")
				for i := range 1000 {
					in.Send("", "a", tidemarktest.AtMillis(3))
					if i == 37 && crash {
						d.Crash(0)
					}
				}
				in.Send("", "b", tidemarktest.AtMillis(9))
				d.Commit()
				in.Send("", "a", tidemarktest.AtMillis(1)) // behind the commit, not late
				in.Send("", "z", tidemarktest.AtMillis(30))
				d.Commit()
				d.Advance(time.Second)
				var got []string
				for _, r := range out.ReadAll() {
					got = append(got, r.Key+r.Value)
				}
				want := "A[-5,5) 1001 ON_TIME, A[0,10) 1001 ON_TIME, B[0,10) 1 ON_TIME, B[5,15) 1 ON_TIME"
				if g := strings.Join(got, ", "); g != want || len(d.Late()) > 0 {
					t.Errorf("got %s, %d late", g, len(d.Late()))
				}
			})
		}
	}
}

package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

const ms = time.Millisecond

// pane prints a result: op, key, window, value, timing and number.
func pane[V any](p topology.Pane[string, V]) string {
	op := "+"
	if p.Op == window.OpRetract {
		op = "-"
	}
	s := fmt.Sprintf("%s%s[%d,%d)=%v %v#%d", op, p.Key, p.Start, p.End, p.Value, p.Timing, p.Index)
	if p.Last {
		s += " last"
	}
	return s
}

// at is a record of key k and time t.
func at(t int64, k string) processor.Record { return rec(t, k, "x") }

// windows counts per window and returns a driver.
func windows(t *testing.T, b time.Duration, w window.Window, opts ...window.Option) *driver {
	top := topology.New("t")
	top.Stream[string, string]("in").
		Timestamps(nil, watermark.OutOfOrderness(b)).
		Window(w, opts...).
		Count("n").
		Map(pane[int64]).
		To("out")
	return start(t, top)
}

// panes returns what was sent, without the topic and the time.
func (d *driver) panes() []string {
	var list []string
	for _, s := range d.sent() {
		if strings.HasPrefix(s, "late ") {
			list = append(list, s)
			continue
		}
		_, s, _ = strings.Cut(s, "=")
		s, _, _ = strings.Cut(s, " tm-op")
		list = append(list, s)
	}
	return list
}

func (d *driver) expectPanes(t *testing.T, want ...string) {
	t.Helper()
	if got := d.panes(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("panes:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestTumblingFiresOnTime(t *testing.T) {
	d := windows(t, 0, window.Tumbling(10*ms))
	d.feeds(t, "in", at(1, "a"), at(2, "b"), at(9, "a"))
	d.expectPanes(t)
	d.feeds(t, "in", at(11, "c"))
	d.expectPanes(t, "+a[0,10)=2 ON_TIME#0 last", "+b[0,10)=1 ON_TIME#0 last")
	d.feeds(t, "in", at(5, "a"), at(35, "z"))
	d.expectPanes(t, "late expired@5 a=x", "+c[10,20)=1 ON_TIME#0 last")
}

func TestTumblingLateAndEarly(t *testing.T) {
	d := windows(t, 0, window.Tumbling(10*ms), window.AllowedLateness(20*ms), window.Early(window.AfterCount(2)))
	d.feeds(t, "in", at(1, "a"), at(2, "a"), at(3, "a"))
	d.expectPanes(t, "+a[0,10)=2 EARLY#0")
	d.commits(t)
	d.feeds(t, "in", at(12, "z"))
	d.expectPanes(t, "+a[0,10)=3 ON_TIME#1")
	d.commits(t)
	d.feeds(t, "in", at(4, "a"))
	d.expectPanes(t, "+a[0,10)=4 LATE#2")
	d.feeds(t, "in", at(50, "z"), at(4, "a"))
	d.expectPanes(t, "+z[10,20)=1 ON_TIME#0 last", "late expired@4 a=x")
}

// A changelog may bring windows back that have expired: they are dropped again before anybody sees them.
func TestRestoreDropsExpired(t *testing.T) {
	d := windows(t, 0, window.Tumbling(10*ms))
	logs := map[string]changelog{}
	d.feeds(t, "in", at(1, "a"), at(12, "b"))
	d.commitTo(t, logs)
	d.feeds(t, "in", at(35, "z"))
	d.commitTo(t, logs)
	d.restore(t, logs)
	dt := d.tasks["n"]
	if err := errors.Join(dt.state.Seal(func(store.Change) error { return nil }), dt.state.Commit([]byte("p"), 0)); err != nil {
		t.Fatal(err)
	}
	left := 0
	if err := dt.state.Rows(0, func(_, _ []byte) { left++ }); err != nil || left != 1 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

func TestSessionsMerge(t *testing.T) {
	// S-BRIDGE
	d := windows(t, 20*ms, window.Session(10*ms), window.Early(window.EachElement()), window.Retracting())
	d.feeds(t, "in", at(0, "u"), at(18, "u"), at(9, "u"))
	d.expectPanes(t, "+u[0,10)=1 EARLY#0", "+u[18,28)=1 EARLY#0", "-u[0,10)=1 EARLY#0", "-u[18,28)=1 EARLY#0", "+u[0,28)=3 EARLY#1")
	d.commits(t)
	d.feeds(t, "in", at(100, "z"))
	d.expectPanes(t, "+z[100,110)=1 EARLY#0", "-u[0,28)=3 ON_TIME#2 last", "+u[0,28)=3 ON_TIME#2 last")
}

func TestCalendarAndHopping(t *testing.T) {
	d := windows(t, 0, window.Hopping(10*ms, 5*ms))
	d.feeds(t, "in", at(11, "k"), at(8, "k"), at(30, "z"))
	// L-HOP-PARTLY-LATE
	d.expectPanes(t, "+k[5,15)=2 ON_TIME#0 last", "+k[10,20)=1 ON_TIME#0 last")
}

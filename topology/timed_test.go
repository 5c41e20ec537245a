package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// firings is how many firings the driver asks for at a time: few, so that advances are interrupted.
const firings = 3

// advance carries out what a watermark makes due.
func (dt *driverTask) advance() error {
	for dt.task.Moved() {
		if _, err := dt.task.Advance(firings); err != nil {
			return err
		}
	}
	return nil
}

// announce tells the readers of repartition topics how far the task has got.
func (dt *driverTask) announce() error {
	for _, o := range dt.task.Outgoing(nil) {
		name := dt.sub.Sinks[o.Sink].Repartition
		c := watermark.Control{Kind: watermark.KindWatermark, Writer: watermark.WriterID(name), Tasks: 1}
		c.Entries = []watermark.Entry{{State: o.State, W: o.W}}
		for _, other := range dt.driver.tasks {
			for i, src := range other.sub.Sources {
				if src.Repartition != name {
					continue
				}
				// The data comes before.
				for _, in := range other.inbox {
					if err := other.process(in); err != nil {
						return err
					}
				}
				other.inbox = nil
				if err := errors.Join(other.task.Control(i, c.Append(nil)), other.advance()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tick lets processing time pass.
func (d *driver) tick(tb testing.TB, now int64) {
	tb.Helper()
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		dt.now = max(dt.now, now)
		if err := dt.task.Tick(now); err != nil {
			tb.Fatal(err)
		}
	}
	if err := d.settle(); err != nil {
		tb.Fatal(err)
	}
}

// abort takes back what was done since the last commit. What was sent is taken back with it, but for what expect has
// seen.
func (d *driver) abort(tb testing.TB) {
	tb.Helper()
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		dt.inbox = nil
		if err := errors.Join(dt.task.Pause(), dt.task.Close()); err != nil {
			tb.Fatal(err)
		}
		dt.state.Rollback()
		if err := dt.build(); err != nil {
			tb.Fatal(err)
		}
		if err := dt.advance(); err != nil {
			tb.Fatal(err)
		}
	}
	d.out = nil
}

// changelog holds the changes of every store of a task in their order.
type changelog map[int][]store.Change

// commitTo is commit with the changes kept.
func (d *driver) commitTo(tb testing.TB, logs map[string]changelog) {
	tb.Helper()
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		if logs[s.ID] == nil {
			logs[s.ID] = changelog{}
		}
		if err := dt.task.Flush(); err != nil {
			tb.Fatal(err)
		}
		dt.clocks = dt.task.AppendClocks(nil)
		err := dt.state.Seal(func(c store.Change) error {
			logs[s.ID][c.Store] = append(logs[s.ID][c.Store], c)
			return nil
		})
		if err := errors.Join(err, dt.state.Commit([]byte("p"), 0)); err != nil {
			tb.Fatal(err)
		}
	}
}

// restore builds every task anew over state from its changelogs.
func (d *driver) restore(tb testing.TB, logs map[string]changelog) {
	tb.Helper()
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		db := store.NewMem()
		bulk, err := store.NewBulk(db, s.Stores, 0)
		if err != nil {
			tb.Fatal(err)
		}
		for i, rows := range logs[s.ID] {
			for _, c := range rows {
				if err := bulk.Add(i, c.Key, c.Value, c.Header, c.Time); err != nil {
					tb.Fatal(err)
				}
			}
		}
		if err := errors.Join(bulk.Finish([]byte("p")), dt.task.Close()); err != nil {
			tb.Fatal(err)
		}
		if dt.state, err = store.Open(db, s.Stores, store.Options{}); err != nil {
			tb.Fatal(err)
		}
		if err := errors.Join(dt.build(), dt.advance()); err != nil {
			tb.Fatal(err)
		}
	}
	d.out = nil
}

// counters returns what an operator has counted.
func (d *driver) counters(operator string) processor.Counters {
	for _, dt := range d.tasks {
		for i, name := range dt.task.Operators() {
			if name == operator {
				return dt.task.Counters()[i]
			}
		}
	}
	return processor.Counters{}
}

// A deadline that comes while the firings of a watermark are interrupted waits for their end: the rows of windows that
// have fired do not say so before. The same after a commit in between, and after a restart from that.
func TestDeadlineWithinFirings(t *testing.T) {
	for _, w := range []window.Window{window.Tumbling(10 * ms), window.Session(5 * ms)} {
		for _, between := range []string{"nothing", "a commit", "a restart"} {
			d := windows(t, 0, w, window.AllowedLateness(time.Second), window.Early(window.Every(100*ms)), window.OnClose(window.Always))
			d.feeds(t, "in", at(1, "a"), at(2, "b"), at(3, "c"))
			dt := d.tasks["n"]
			r := at(25, "z")
			r.Topic = "in"
			if err := dt.task.Process(0, &r); err != nil {
				t.Fatal(err)
			}
			if done, err := dt.task.Advance(1); done || err != nil {
				t.Fatal(done, err)
			}
			if between != "nothing" {
				d.commits(t)
			}
			if between == "a restart" {
				if err := errors.Join(dt.task.Pause(), dt.task.Close(), dt.build()); err != nil {
					t.Fatal(err)
				}
			}
			d.tick(t, 1000)
			if err := dt.advance(); err != nil {
				t.Fatal(err)
			}
			d.tick(t, 2000)
			var first []string
			for _, p := range d.panes() {
				if !strings.HasPrefix(p, "+z") {
					first = append(first, strings.SplitN(p, "=", 2)[1])
				}
			}
			if got := strings.Join(first, ", "); got != "1 ON_TIME#0, 1 ON_TIME#0, 1 ON_TIME#0" {
				t.Errorf("%s, %s in between: %s", w, between, got)
			}
		}
	}
}

package tidemarktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// twice counts per key in windows of 10 ms, and then how many windows had each count.
func twice() *topology.Topology {
	t := topology.New("twice")
	t.Stream[string, string]("in").Timestamps(nil).
		KeyBy("by-value", func(v string) string { return v }).
		Window(window.Tumbling(10*time.Millisecond), window.AllowedLateness(20*time.Millisecond)).
		Count("counts").
		To("counts")
	return t
}

func TestUncommittedDoesNotShow(t *testing.T) {
	d := tidemarktest.New(t, twice(), tidemarktest.Options{Partitions: 4, Instances: 3})
	in := tidemarktest.Input[string, string](d, "in")
	out := tidemarktest.Output[string, int64](d, "counts")
	in.Send("x", "a", tidemarktest.AtMillis(1))
	in.Send("x", "a", tidemarktest.AtMillis(2))
	in.Send("x", "z", tidemarktest.AtMillis(25))
	if !out.Empty() {
		t.Fatal("something shows before the commit")
	}
	for i := range 3 {
		d.Crash(i)
	}
	d.Commit()
	list := out.ReadAll()
	if len(list) != 1 || list[0].Key != "a" || list[0].Value != 2 || list[0].Pane.Timing != window.TimingOnTime {
		t.Fatalf("committed: %+v", list)
	}
	d.Rebalance()
	d.RestoreBy(tidemarktest.Changelog)
	d.Rebalance()
	in.Send("x", "a", tidemarktest.AtMillis(3))
	d.Commit()
	if list = out.ReadAll(); len(list) != 1 || list[0].Value != 3 || list[0].Pane.Timing != window.TimingLate {
		t.Fatalf("committed: %+v", list)
	}
	rows := tidemarktest.Store[string, int64](d, "counts").Rows()
	if len(rows) != 2 || rows[0].Key != "a" || rows[0].Value != 3 || rows[0].Window.Start != 0 {
		t.Fatalf("rows: %+v", rows)
	}
	if n, ok := tidemarktest.Store[string, int64](d, "counts").Window("z", time.UnixMilli(20)); !ok || n != 1 {
		t.Fatalf("z: %d, %t", n, ok)
	}
	in.Send("x", "z", tidemarktest.AtMillis(60))
	d.Commit()
	in.Send("x", "a", tidemarktest.AtMillis(4))
	d.Commit()
	late := d.Late()
	if len(late) != 1 || late[0].Reason != processor.Expired || string(late[0].Value) != "a" || late[0].Window != (window.Bounds{Start: 0, End: 10}) {
		t.Fatalf("late: %+v", late)
	}
}

func TestSilentPartition(t *testing.T) {
	topo := topology.New("silent")
	topo.Stream[string, string]("in").Timestamps(nil, watermark.IdleAfter(5*time.Second)).
		KeyBy("by", func(v string) string { return v }).
		Window(window.Tumbling(10 * time.Millisecond)).Count("counts").To("out")
	d := tidemarktest.New(t, topo, tidemarktest.Options{Partitions: 2})
	in := tidemarktest.Input[string, string](d, "in")
	out := tidemarktest.Output[string, int64](d, "out")
	in.Send("", "a", tidemarktest.AtMillis(5), tidemarktest.To(0))
	in.Send("", "b", tidemarktest.AtMillis(25), tidemarktest.To(1))
	d.Commit()
	if !out.Empty() {
		t.Fatal("partition 0 does not hold the watermark")
	}
	d.Advance(4 * time.Second)
	in.Send("", "b", tidemarktest.AtMillis(25), tidemarktest.To(1))
	d.Advance(999 * time.Millisecond)
	if !out.Empty() {
		t.Fatal("idle too early")
	}
	d.Advance(101 * time.Millisecond)
	if list := out.ReadAll(); len(list) != 1 || list[0].Key != "a" {
		t.Fatalf("committed: %+v", list)
	}
	for _, w := range d.Watermarks() {
		if w.Operator == "counts" && w.W != 24 {
			t.Errorf("watermark %+v", w)
		}
	}
}

func TestDeadLetter(t *testing.T) {
	bad := errors.New("bad")
	build := func() *topology.Topology {
		topo := topology.New("bad")
		s := topo.Stream[string, int64]("in")
		s.Count("n", topology.EveryUpdate()).To("n")
		s.TryMap(func(_ *topology.Context, _ string, v int64) (int64, error) {
			if v == 0 {
				return 0, bad
			}
			return 100 / v, nil
		}).To("out")
		return topo
	}
	d := tidemarktest.New(t, build(), tidemarktest.Options{DeadLetter: true})
	in := tidemarktest.Input[string, int64](d, "in")
	n := tidemarktest.Output[string, int64](d, "n")
	for _, v := range []int64{1, 0, 5} {
		in.Send("a", v)
	}
	d.Commit()
	if list := n.ReadAll(); len(list) != 2 || list[1].Value != 2 {
		t.Errorf("counted: %+v", list)
	}
	if dead := d.DeadLetters(); len(dead) != 1 || dead[0].Offset != 1 || !errors.Is(dead[0].Err, bad) {
		t.Errorf("dead letters: %+v", dead)
	}

	d = tidemarktest.New(t, build(), tidemarktest.Options{})
	in = tidemarktest.Input[string, int64](d, "in")
	in.Send("a", 1)
	err := in.TrySend("a", 0)
	var re *tidemarktest.RecordError
	if !errors.As(err, &re) || re.Offset != 1 || !errors.Is(d.Err(), bad) {
		t.Errorf("error: %v", err)
	}
}

// What stands for null in a type is sent as null, and what is empty is not.
func TestNulls(t *testing.T) {
	top := topology.New("t")
	top.Stream[[]byte, []byte]("in").To("out")
	d := tidemarktest.New(t, top, tidemarktest.Options{})
	in := tidemarktest.Input[[]byte, []byte](d, "in")
	out := tidemarktest.Output[[]byte, []byte](d, "out")
	in.Send(nil, nil)
	in.Send([]byte{}, []byte{})
	in.Delete(nil)
	d.Commit()
	list := out.ReadAll()
	if len(list) != 3 {
		t.Fatalf("%d records", len(list))
	}
	for i, r := range list {
		if null := i != 1; r.Null != null || (r.Key == nil) != null || (r.Value == nil) != null {
			t.Errorf("record %d: %+v", i, r)
		}
	}
}

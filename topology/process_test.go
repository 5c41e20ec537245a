package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

func TestProcess(t *testing.T) {
	top := topology.New("t")
	seen := topology.KeyValue[string, int64]("seen")
	odd, even := topology.Output[int64, string]("odd"), topology.Output[string, int64]("even")
	p := top.Stream[string, string]("in").
		Process("p", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			n, ok, err := seen.Get(out, r.Value)
			if err != nil {
				return err
			}
			if ok != (n > 0) {
				return fmt.Errorf("%d %t", n, ok)
			}
			n++
			if err := seen.Put(out, r.Value, n); err != nil {
				return err
			}
			if r.Value == "forget" {
				if err := seen.Delete(out, r.Value); err != nil {
					return err
				}
			}
			r.AddHeader("from", []byte(r.Operator()))
			out.Emit(r.Key, r.Value)
			out.EmitAt(r.Timestamp()+100, r.Value, r.Key)
			if n%2 == 1 {
				odd.Emit(out, n, r.Value)
			} else {
				even.EmitAt(out, 7, r.Value, n)
			}
			return nil
		}, seen, odd, even)
	p.Map(strings.ToUpper).To("out")
	p.Side(odd).To("odd")
	p.Side(even).To("even")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"), rec(2, "k", "v"), rec(3, "k", "forget"), rec(4, "k", "forget"))
	d.expect(t,
		"out@1 k=V from:p", "out@101 v=K from:p", "odd@1 1=v from:p",
		"out@2 k=V from:p", "out@102 v=K from:p", "even@7 v=2 from:p",
		"out@3 k=FORGET from:p", "out@103 forget=K from:p", "odd@3 1=forget from:p",
		"out@4 k=FORGET from:p", "out@104 forget=K from:p", "odd@4 1=forget from:p")
}

func TestScan(t *testing.T) {
	top := topology.New("t")
	kv := topology.KeyValue[string, []byte]("kv")
	ro := topology.ReadOnly[string, []byte]("kv")
	in := top.Stream[string, []byte]("in")
	in.Process("w", func(out topology.Emitter[string, string], r topology.Record[string, []byte]) error {
		return kv.Put(out, r.Key, r.Value) // null deletes
	}, kv)
	in.Process("r", func(out topology.Emitter[string, string], r topology.Record[string, []byte]) error {
		var all, some []string
		add := func(list *[]string, limit int) func(string, []byte) bool {
			return func(k string, v []byte) bool {
				*list = append(*list, k+string(v))
				return len(*list) < limit
			}
		}
		from, to := "b", "d"
		if err := errors.Join(ro.Scan(out, nil, nil, add(&all, 3)), kv.Scan(out, &from, &to, add(&some, 9))); err != nil {
			return err
		}
		out.Emit(r.Key, fmt.Sprint(all, some))
		return nil
	}, kv, ro).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "a", "1"), rec(1, "b", "2"), rec(1, "c", "3"), rec(1, "d", "4"))
	d.commits(t)
	d.sent()
	d.feeds(t, "in", rec(1, "b", "null"))
	d.expect(t, "out@1 b=[a1 c3 d4] [c3]")
}

func TestProcessorsShareAStore(t *testing.T) {
	top := topology.New("t")
	kv := topology.KeyValue[string, string]("kv")
	top.Stream[string, string]("a").Process("put", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
		return kv.Put(out, r.Key, r.Value)
	}, kv)
	top.Stream[string, string]("b").Process("get", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
		v, _, err := kv.Get(out, r.Key)
		out.Emit(r.Key, v)
		return err
	}, kv).To("out")
	d := start(t, top)
	if len(d.plan.Subs) != 1 || len(d.plan.Subs[0].Stores) != 1 {
		t.Fatal(d.plan.Describe())
	}
	d.feeds(t, "a", rec(1, "k", "v"))
	d.feeds(t, "b", rec(2, "k", ""))
	d.expect(t, "out@2 k=v")
	if _, err := topology.CheckPartitions(d.plan, map[string]int{"a": 2, "b": 3}); !errors.Is(err, topology.ErrPartitionMismatch) {
		t.Errorf("inputs of one store with 2 and 3 partitions: %v", err)
	}
}

func TestReadOnlyStoreOfAnAggregate(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Count("n")
	n := topology.ReadOnly[string, int64]("n")
	top.Stream[string, string]("ask").Process("p", func(out topology.Emitter[string, int64], r topology.Record[string, string]) error {
		v, _, err := n.Get(out, r.Key)
		out.Emit(r.Key, v)
		return err
	}, n).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", ""), rec(1, "k", ""))
	d.feeds(t, "ask", rec(1, "k", ""), rec(1, "none", ""))
	d.expect(t, "out@1 k=2", "out@1 none=0")
}

// counter is a processor with a life of its own.
type counter struct {
	opened, closed *int
	n              int64
}

func (c *counter) Open(topology.TaskID) error { *c.opened++; return nil }
func (c *counter) Close() error               { *c.closed++; return errors.New("closed") }
func (c *counter) Process(out topology.Emitter[string, int64], r topology.Record[string, string]) error {
	c.n++
	out.Emit(r.Key, c.n)
	return nil
}

func TestProcessWith(t *testing.T) {
	var made, opened, closed int
	top := topology.New("t")
	top.Stream[string, string]("in").ProcessWith("p", func() topology.Processor[string, string, string, int64] {
		made++
		return &counter{opened: &opened, closed: &closed}
	}).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", ""), rec(1, "null", ""))
	d.expect(t, "out@1 k=1", "out@1 =2") // string has no null
	dt := d.tasks["in"]
	if err := dt.task.Close(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("close: %v", err)
	}
	if err := dt.build(); err != nil {
		t.Fatal(err)
	}
	d.feeds(t, "in", rec(1, "k", ""))
	d.expect(t, "out@1 k=1")
	if made != 2 || opened != 2 || closed != 1 {
		t.Errorf("made %d, opened %d, closed %d", made, opened, closed)
	}
}

type failing struct{}

func (failing) Open(topology.TaskID) error { return errors.New("cannot open") }
func (failing) Process(topology.Emitter[string, int64], topology.Record[string, string]) error {
	return nil
}

func TestProcessorThatCannotBeMade(t *testing.T) {
	for want, make := range map[string]func() topology.Processor[string, string, string, int64]{
		"returned nil": func() topology.Processor[string, string, string, int64] { return nil },
		"cannot open":  func() topology.Processor[string, string, string, int64] { return failing{} },
	} {
		top := topology.New("t")
		top.Stream[string, string]("in").ProcessWith("p", make)
		if _, err := newDriver(top); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p: build task") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestKeepsKey(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").
		Process("p", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if r.Value == "stray" {
				out.Emit("other", r.Value)
			}
			out.Emit(r.Key, r.Value)
			return nil
		}, topology.KeepsKey()).
		Count("n").To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"))
	err := d.feed("in", rec(1, "k", "stray"))
	wantError(t, err, "p", processor.StageUser, "another key")
	if !errors.Is(err, processor.ErrKeyChanged) {
		t.Error("not ErrKeyChanged")
	}
	d.commits(t)
	d.expect(t, "out@1 k=1")
}

func TestProcessErrors(t *testing.T) {
	sad := errors.New("sad")
	top := topology.New("t")
	top.Stream[string, string]("in").
		Process("outer", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if r.Value == "mine" {
				return sad
			}
			out.Emit(r.Key, r.Value)
			out.Emit(r.Key, "again")
			return nil // the error of what is downstream is not lost
		}).
		Process("inner", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
			if r.Value == "deep" {
				return sad
			}
			out.Emit(r.Key, r.Value)
			return nil
		}).To("out")
	d := start(t, top)
	wantError(t, d.feed("in", rec(1, "k", "mine")), "outer", processor.StageUser, "sad")
	err := d.feed("in", rec(1, "k", "deep"))
	wantError(t, err, "inner", processor.StageUser, "sad")
	if !errors.Is(err, sad) {
		t.Error("cause lost")
	}
	d.expect(t)
	d.feeds(t, "in", rec(1, "k", "v"))
	d.expect(t, "out@1 k=v", "out@1 k=again")
}

func TestHandleThatIsNotListed(t *testing.T) {
	top := topology.New("t")
	kv := topology.KeyValue[string, string]("kv")
	in := top.Stream[string, string]("in")
	in.Process("with", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
		return kv.Put(out, r.Key, r.Value)
	}, kv)
	in.Process("without", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
		return kv.Put(out, r.Key, r.Value)
	})
	d := start(t, top)
	wantError(t, d.feed("in", rec(1, "k", "v")), "without", processor.StageUser, `store kv is used by a processor that does not list it`)
}

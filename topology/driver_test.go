package topology_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// driver runs a plan in memory: one task per sub-topology, on partition 0, without a broker. Records a sub-topology
// writes to a repartition topic, or to a topic another one reads, are processed when the writer is done. A commit
// flushes and seals the tasks in the order of the plan.
type driver struct {
	plan   *topology.Plan
	tasks  map[string]*driverTask
	out    []output // what went to topics, in order
	offset int64
}

type driverTask struct {
	sub    *topology.Sub
	task   *processor.Task
	state  *store.State
	inbox  []inbound
	driver *driver
	clocks []byte // event time at the last commit
	now    int64  // processing time at which the task begins
	fail   error  // of every Send
}

type inbound struct {
	source int
	r      processor.Record
}

// output is one record a task sent.
type output struct {
	topic      string // "repartition <id>" for an internal one
	time       int64
	key, value []byte
	headers    []processor.Header
}

func (o output) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s@%d %s=%s", o.topic, o.time, text(o.key), text(o.value))
	for _, h := range o.headers {
		fmt.Fprintf(&b, " %s:%s", h.Key, text(h.Value))
	}
	return b.String()
}

// text prints bytes: null, text, or an integer of eight bytes.
func text(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) == 8 && (b[0] == 0 || b[0] == 0xff):
		var n int64
		for _, c := range b {
			n = n<<8 | int64(c)
		}
		return fmt.Sprint(n)
	}
	return string(b)
}

func newDriver(t *topology.Topology) (*driver, error) {
	plan, err := t.Build()
	if err != nil {
		return nil, err
	}
	d := &driver{plan: plan, tasks: map[string]*driverTask{}}
	for _, s := range plan.Subs {
		dt := &driverTask{sub: s, driver: d}
		if dt.state, err = store.Open(store.NewMem(), s.Stores, store.Options{}); err != nil {
			return nil, err
		}
		if err := dt.build(); err != nil {
			return nil, err
		}
		d.tasks[s.ID] = dt
	}
	return d, nil
}

// build makes the task anew over its state, as after an abort.
func (dt *driverTask) build() error {
	task, err := dt.sub.NewTask(processor.Env{
		Task: processor.TaskID{Sub: dt.sub.ID}, Output: dt, State: dt.state, Clocks: dt.clocks, Now: func() int64 { return 1 },
	})
	dt.task = task
	if err == nil {
		task.Start(dt.now)
	}
	return err
}

// process takes one record, and then what the watermark makes of it, a few firings at a time.
func (dt *driverTask) process(in inbound) error {
	if err := dt.task.Process(in.source, &in.r); err != nil {
		return err
	}
	return dt.advance()
}

// Send implements processor.Output.
func (dt *driverTask) Send(sink int, by []byte, time int64, key, value []byte, headers []processor.Header) error {
	if dt.fail != nil {
		return dt.fail
	}
	k := dt.sub.Sinks[sink]
	o := output{k.Topic, time, key, value, append([]processor.Header(nil), headers...)}
	if k.Repartition != "" {
		o.topic = "repartition " + k.Repartition
	}
	dt.driver.out = append(dt.driver.out, o)
	for _, other := range dt.driver.tasks {
		for i, src := range other.sub.Sources {
			if src.Topic == k.Topic && src.Repartition == k.Repartition {
				other.inbox = append(other.inbox, inbound{i, processor.Record{
					Topic: o.topic, Time: time, Key: key, Value: value, Headers: o.headers,
				}})
			}
		}
	}
	return nil
}

// Late implements processor.Output.
func (dt *driverTask) Late(l *processor.Late) error {
	dt.driver.out = append(dt.driver.out, output{"late " + l.Reason.String(), l.Time, l.Record.Key, l.Record.Value, nil})
	return nil
}

// feed sends one record into a topic and processes all that follows from it.
func (d *driver) feed(topic string, r processor.Record) error {
	r.Topic = topic
	r.Offset = d.offset
	d.offset++
	found := false
	for _, s := range d.plan.Subs {
		for i, src := range s.Sources {
			if src.Topic == topic {
				found = true
				dt := d.tasks[s.ID]
				dt.inbox = append(dt.inbox, inbound{i, r})
			}
		}
	}
	if !found {
		return fmt.Errorf("nothing reads topic %q", topic)
	}
	return d.settle()
}

// settle processes what is waiting, writers before readers.
func (d *driver) settle() error {
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		for len(dt.inbox) > 0 {
			in := dt.inbox[0]
			dt.inbox = dt.inbox[1:]
			if err := dt.process(in); err != nil {
				return err
			}
		}
		if err := dt.announce(); err != nil {
			return err
		}
	}
	return nil
}

// commit flushes and commits every task in the order of the plan.
func (d *driver) commit() error {
	for _, s := range d.plan.Subs {
		dt := d.tasks[s.ID]
		for len(dt.inbox) > 0 {
			in := dt.inbox[0]
			dt.inbox = dt.inbox[1:]
			if err := dt.process(in); err != nil {
				return err
			}
		}
		if err := dt.task.Flush(); err != nil {
			return err
		}
		if err := dt.state.Seal(func(store.Change) error { return nil }); err != nil {
			return err
		}
		if err := dt.state.Commit(nil, 0); err != nil {
			return err
		}
		dt.clocks = dt.task.AppendClocks(nil)
	}
	return nil
}

// sent returns what went to topics so far, without internal ones, and forgets it.
func (d *driver) sent() []string {
	var list []string
	for _, o := range d.out {
		if !strings.HasPrefix(o.topic, "repartition ") {
			list = append(list, o.String())
		}
	}
	d.out = nil
	return list
}

// rec is a record with key and value as text; "null" stands for null.
func rec(time int64, key, value string, headers ...processor.Header) processor.Record {
	return processor.Record{Time: time, Key: raw(key), Value: raw(value), Headers: headers}
}

func raw(s string) []byte {
	if s == "null" {
		return nil
	}
	return []byte(s)
}

// start builds a topology for a test.
func start(tb testing.TB, t *topology.Topology) *driver {
	tb.Helper()
	d, err := newDriver(t)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// feeds sends records and fails the test if one is refused.
func (d *driver) feeds(tb testing.TB, topic string, records ...processor.Record) {
	tb.Helper()
	for _, r := range records {
		if err := d.feed(topic, r); err != nil {
			tb.Fatal(err)
		}
	}
}

func (d *driver) commits(tb testing.TB) {
	tb.Helper()
	if err := d.commit(); err != nil {
		tb.Fatal(err)
	}
}

// expect compares what was sent since the last call.
func (d *driver) expect(tb testing.TB, want ...string) {
	tb.Helper()
	if got := d.sent(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		tb.Errorf("sent:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// show runs records of one topic through a topology, commits, and prints what comes out: the driver of the examples.
func show(w io.Writer, t *topology.Topology, topic string, keysAndValues ...string) {
	showAt(w, t, 0, topic, keysAndValues...)
}

// showAt is show with a commit at a processing time, in ms.
func showAt(w io.Writer, t *topology.Topology, now int64, topic string, keysAndValues ...string) {
	d, err := newDriver(t)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	for i := 0; i < len(keysAndValues); i += 2 {
		if err := d.feed(topic, rec(int64(i/2), keysAndValues[i], keysAndValues[i+1])); err != nil {
			fmt.Fprintln(w, err)
			return
		}
	}
	for _, s := range d.plan.Subs {
		if err := d.tasks[s.ID].task.Tick(now); err != nil {
			fmt.Fprintln(w, err)
			return
		}
	}
	if err := d.commit(); err != nil {
		fmt.Fprintln(w, err)
	}
	for _, s := range d.sent() {
		fmt.Fprintln(w, s)
	}
}

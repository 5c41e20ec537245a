package tidemarktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// line is one line of printed text, with what it is compared by.
type line struct {
	group string // topic and key: the order of lines is kept within
	text  string
}

// run is one execution of a history.
type run struct {
	h      *history
	forms  map[string]Form
	c      *cluster
	topics []string // of the outputs
	read   map[string][]int
	late   int
	dead   int
	blocks [][]line
	rest   []line // what no step printed
	finals map[string]string
	sum    bool
}

// defaultForm is that of topics and stores without one.
var defaultForm = TopicForm[string, int64]("")

func (r *run) form(name string) Form {
	if f, ok := r.forms[name]; ok {
		return f
	}
	return defaultForm
}

func newRun(h *history, s *Scenario, plan *topology.Plan, o Options) (*run, error) {
	o.Start, o.DeadLetter = h.start, h.dead
	c, err := newCluster(plan, o)
	if err != nil {
		return nil, err
	}
	r := &run{h: h, forms: s.forms(), c: c, read: map[string][]int{}, finals: map[string]string{}, sum: s.Sum}
	for _, sub := range plan.Subs {
		for _, k := range sub.Sinks {
			if k.Topic != "" && r.read[k.Topic] == nil {
				r.topics = append(r.topics, k.Topic)
				r.read[k.Topic] = make([]int, len(c.logs[k.Topic].parts))
			}
		}
	}
	slices.Sort(r.topics)
	return r, c.settle()
}

// step carries out one step.
func (r *run) step(s *step) error {
	var err error
	if s.prints {
		var block []line
		switch s.verb {
		case "output":
			block, err = r.output()
		case "store":
			block, err = r.store(s.args[0])
		case "watermarks":
			block = r.watermarks()
		}
		r.blocks = append(r.blocks, block)
	} else {
		err = r.c.alive(func() error { return r.act(s) })
		if r.c.err != nil {
			err = nil // output prints it
		}
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", s.line+1, err)
	}
	return nil
}

func (r *run) act(s *step) error {
	c := r.c
	switch s.verb {
	case "emit":
		return r.emit(s)
	case "advance":
		d, err := time.ParseDuration(s.args[0])
		if err != nil {
			return err
		}
		return c.advance(d.Milliseconds())
	case "idle":
		l := c.logs[s.args[0]]
		if s.args[1] != "*" || l == nil {
			n, err := strconv.Atoi(s.args[1])
			if err != nil {
				return err
			}
			return c.idle(s.args[0], n)
		}
		for p := range l.parts {
			l.parts[p].silent = true
		}
		return c.settle()
	case "commit":
		return c.commit()
	case "crash":
		n := 0
		if len(s.args) > 0 {
			var err error
			if n, err = strconv.Atoi(s.args[0]); err != nil {
				return err
			}
		}
		return c.crash(n % len(c.instances))
	case "rebalance":
		return c.rebalance()
	case "restore":
		switch s.args[0] {
		case "local":
			c.o.Restore = Local
		case "changelog":
			c.o.Restore = Changelog
		default:
			return fmt.Errorf("restore: %q is neither local nor changelog", s.args[0])
		}
	}
	return nil
}

func (r *run) emit(s *step) error {
	e, err := s.emission()
	if err != nil {
		return err
	}
	f := r.form(e.topic)
	rec := record{time: e.at}
	if rec.key, err = f.key.parse(e.key); err != nil {
		return err
	}
	if rec.value, err = f.value.parse(e.value); err != nil {
		return err
	}
	for _, h := range e.headers {
		name, value, _ := strings.Cut(h, "=")
		b, err := defaultForm.key.parse(value)
		if err != nil {
			return err
		}
		rec.headers = append(rec.headers, processor.Header{Key: name, Value: b})
	}
	if e.partition != -2 {
		return r.c.send(e.topic, e.partition, rec)
	}
	l := r.c.logs[e.topic]
	if l == nil {
		return fmt.Errorf("no topic %q", e.topic)
	}
	for p := range l.parts {
		l.add(int32(p), rec)
	}
	return r.c.settle()
}

// output lists what has been committed since the last time.
func (r *run) output() ([]line, error) {
	var block []line
	for _, topic := range r.topics {
		f := r.form(topic)
		for p, next := range r.read[topic] {
			records := r.c.logs[topic].parts[p].records
			for ; next < len(records); next++ {
				rec := &records[next]
				l, err := r.print(topic, f, rec)
				if err != nil {
					return nil, fmt.Errorf("%s/%d offset %d: %w", topic, p, next, err)
				}
				block = append(block, l)
			}
			r.read[topic][p] = next
		}
	}
	for ; r.late < len(r.c.late); r.late++ {
		l := &r.c.late[r.late]
		f := r.form(strings.TrimSuffix(l.Topic, "-repartition"))
		text := fmt.Sprintf("late %s=%s @%s %s", f.key.format(l.Key), f.value.format(l.Value), r.time(l.Time), l.Reason)
		if l.Windowed {
			text += fmt.Sprintf(" %s by %d", r.bounds(l.Window), l.By)
		}
		block = append(block, line{"late " + string(l.Key), text + " at " + l.Operator})
	}
	for ; r.dead < len(r.c.dead); r.dead++ {
		l := &r.c.dead[r.dead]
		f := r.form(strings.TrimSuffix(l.Topic, "-repartition"))
		cause := l.Err
		var re *RecordError
		if errors.As(cause, &re) {
			cause = re.Err
		}
		block = append(block, line{"dead " + string(l.Key), fmt.Sprintf("dead %s=%s: %v", f.key.format(l.Key), f.value.format(l.Value), cause)})
	}
	if r.c.err != nil {
		block = append(block, line{"failed", "failed: " + r.c.err.Error()})
	}
	return block, nil
}

// print renders one record and notes what is final so far.
func (r *run) print(topic string, f Form, rec *record) (line, error) {
	p, op, err := paneOf(rec)
	if err != nil {
		return line{}, err
	}
	key := f.key.format(userKey(rec, p))
	value := f.value.format(rec.value)
	id := topic + " " + key
	l := line{group: id}
	var b strings.Builder
	b.WriteString(topic)
	switch {
	case op != 0:
		b.WriteString(" " + op.String())
	case p != nil && rec.value == nil:
		b.WriteString(" gone")
	}
	b.WriteString(" " + key)
	if p != nil {
		w := r.bounds(p.Bounds)
		id += w
		b.WriteString(w)
	}
	if rec.value != nil || p == nil {
		b.WriteString("=" + value)
	}
	if p != nil && rec.value != nil && op != window.OpRetract {
		fmt.Fprintf(&b, " %s#%d", p.Timing, p.Index)
		if p.Last {
			b.WriteString(" last")
		}
	}
	b.WriteString(" @" + r.time(rec.time))
	if p == nil {
		for _, h := range rec.headers {
			if h.Key != window.OpHeader {
				fmt.Fprintf(&b, " %s=%s", h.Key, h.Value)
			}
		}
	}
	l.text = b.String()
	switch {
	case op == window.OpRetract:
	case rec.value == nil:
		delete(r.finals, id)
	case r.sum && p != nil:
		have, _ := strconv.ParseInt(r.finals[id], 10, 64)
		add, _ := strconv.ParseInt(value, 10, 64)
		r.finals[id] = strconv.FormatInt(have+add, 10)
	default:
		r.finals[id] = value
	}
	return l, nil
}

// store lists the committed rows of a store.
func (r *run) store(id string) ([]line, error) {
	rows, err := r.c.rows(id)
	if err != nil {
		return nil, err
	}
	f := r.form(id)
	var block []line
	for _, row := range rows {
		text := f.key.format(row.key)
		if row.bounds != nil {
			text += r.bounds(*row.bounds)
		}
		block = append(block, line{id + " " + string(row.key), text + "=" + f.value.format(row.value)})
	}
	return block, nil
}

// watermarks lists where the operators are.
func (r *run) watermarks() []line {
	var block []line
	for _, w := range r.c.watermarks() {
		at := "unknown"
		switch w.W {
		case watermark.Unknown:
		case watermark.Finished:
			at = "finished"
		default:
			at = r.time(w.W)
		}
		text := fmt.Sprintf("%s %s: %s", w.Task, w.Operator, at)
		if w.Idle {
			text += " idle"
		}
		block = append(block, line{w.Operator, text})
	}
	return block
}

// bounds prints a window.
func (r *run) bounds(b window.Bounds) string {
	return "[" + r.time(b.Start) + "," + r.time(b.End) + ")"
}

// time prints a time as the history wants it.
func (r *run) time(ms int64) string {
	switch {
	case ms == watermark.Unknown:
		return "min"
	case ms == watermark.Finished:
		return "max"
	case r.h.utc:
		return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z")
	}
	return strconv.FormatInt(ms, 10)
}

// texts returns the lines of a block as they are printed.
func texts(block []line) []string {
	list := make([]string, len(block))
	for i, l := range block {
		list[i] = l.text
	}
	return list
}

// sorted returns the lines of a block by topic and key, each in its order.
func sorted(block []line) []string {
	block = slices.Clone(block)
	slices.SortStableFunc(block, func(a, b line) int { return cmp.Compare(a.group, b.group) })
	return texts(block)
}

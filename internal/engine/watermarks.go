package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/watermark"
)

// Watermark is how far the event time of one operator in one task has got, and what keeps it from going on.
type Watermark struct {
	// Operator is the id of the operator, or its kind and number.
	Operator string
	// Task is the task it runs in.
	Task processor.TaskID
	// W is the watermark in ms since 1970: no record with that time or an earlier one is on time any more. It is
	// watermark.Unknown before there is one and watermark.Finished when there will be no record.
	W int64
	// Lag is the wall clock minus W; zero while W is unknown or finished.
	Lag time.Duration
	// Idle says that every input is silent: nothing holds W, and unless the topic's settings say otherwise it stays.
	Idle bool
	// Since is when W has last moved, as far as this instance has seen it.
	Since time.Time
	// Holder is the input with the lowest watermark; the zero Holder if every input is silent.
	Holder Holder
}

// Holder is the input that keeps a watermark where it is.
type Holder struct {
	// Topic and Partition are the input of the task.
	Topic     string
	Partition int32
	// Upstream is the task that has announced the lowest watermark in a repartition topic. It is the zero TaskID for a topic
	// of others, and while a sub-topology that writes the topic has not been heard from at all.
	Upstream processor.TaskID
	// W is its watermark in ms.
	W int64
	// Reason says what is known about why.
	Reason HolderReason
	// Since is when it has begun to hold the operator's watermark: when that has last moved.
	Since time.Time
}

// HolderReason is what an instance knows about why an input does not go on.
type HolderReason string

// The reasons.
const (
	// HeldByData: records of the input are there and wait to be processed.
	HeldByData HolderReason = "records waiting"
	// HeldBySilence: nothing comes, and the time after which the input is silent has not passed.
	HeldBySilence HolderReason = "no records"
	// HeldByTransaction: an open transaction of a producer hides what was written behind it.
	HeldByTransaction HolderReason = "open transaction"
	// HeldByUpstream: the named task has announced nothing higher. If it runs elsewhere, its instance knows more.
	HeldByUpstream HolderReason = "upstream task"
	// HeldByUnheard: an upstream task has not been heard from since this task began.
	HeldByUnheard HolderReason = "upstream task not heard from"
)

// String returns "<topic>/<partition>", or "task <id>" for an upstream task.
func (h Holder) String() string {
	switch {
	case h.Topic == "":
		return ""
	case h.Upstream.Sub != "":
		return "task " + h.Upstream.String()
	}
	return h.Topic + "/" + strconv.Itoa(int(h.Partition))
}

// standing is how long an operator's watermark has been where it is.
type standing struct {
	w     int64
	since time.Time
}

// observePeriod is how often tasks show their watermarks.
const observePeriod = 200 * time.Millisecond

// observe shows the watermarks of the worker's tasks to other goroutines.
func (w *worker) observe(now time.Time) {
	if now.Before(w.observeAt) {
		return
	}
	w.observeAt = now.Add(observePeriod)
	for _, t := range w.tasks {
		if t.sub.Timed && TaskState(t.phase.Load()) == Running {
			t.show(now)
		}
	}
}

// show makes the present watermarks of a task readable by other goroutines.
func (t *task) show(now time.Time) {
	t.marks = t.proc.Watermarks(t.marks[:0])
	if len(t.standing) != len(t.marks) {
		t.standing = make([]standing, len(t.marks))
		for i := range t.standing {
			t.standing[i] = standing{t.marks[i].W, now}
		}
	}
	list := make([]Watermark, len(t.marks))
	for i, m := range t.marks {
		if st := &t.standing[i]; st.w != m.W {
			*st = standing{m.W, now}
		}
		since := t.standing[i].since
		list[i] = Watermark{Operator: m.Operator, Task: t.id, W: m.W, Idle: m.Idle, Since: since, Holder: t.holder(m, since)}
	}
	for _, in := range t.inputs {
		in.idle.Store(t.proc.Idle(in.source))
	}
	t.shown.Store(&list)
}

// holder translates what the processor says of the input that holds a watermark.
func (t *task) holder(m processor.Watermark, since time.Time) Holder {
	for _, in := range t.inputs {
		src := &t.sub.Sources[in.source]
		if m.Holder.Source == "" || m.Holder.Source != cmp.Or(src.Topic, src.Repartition) {
			continue
		}
		h := Holder{Topic: in.topic, Partition: in.partition, W: m.Holder.W, Since: since, Reason: HeldBySilence}
		switch {
		case in.internal && m.Holder.Task < 0:
			h.Reason = HeldByUnheard
		case in.internal:
			h.Upstream = processor.TaskID{Sub: t.worker.e.writerOf(m.Holder.Writer), Partition: m.Holder.Task}
			if h.Reason = HeldByUpstream; !m.Holder.Heard {
				h.Reason = HeldByUnheard
			}
		case in.position < in.end.Load() || in.head() != nil:
			h.Reason = HeldByData
		case in.hidden.Load():
			h.Reason = HeldByTransaction
		}
		return h
	}
	return Holder{}
}

// writerOf returns the sub-topology that writes control records under an id.
func (e *Engine) writerOf(writer uint32) string {
	for _, s := range e.subs {
		for _, k := range s.Sinks {
			if k.Repartition != "" && watermark.WriterID(k.Repartition) == writer {
				return s.id
			}
		}
	}
	return ""
}

// Watermarks returns the watermark of every operator that has one, for the tasks that run in this instance, ordered by
// operator and task. It is at most half a second old, but for the lag, which is that of the moment.
func (e *Engine) Watermarks() []Watermark {
	var out []Watermark
	now := e.cfg.Clock.Now().UnixMilli()
	for _, t := range e.mgr.snapshot() {
		list := t.shown.Load()
		if list == nil || TaskState(t.phase.Load()) != Running || t.lease.lost() {
			continue
		}
		for _, m := range *list {
			if m.W != watermark.Unknown && m.W != watermark.Finished {
				m.Lag = lagOf(now, m.W)
			}
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Watermark) int {
		return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Task.Sub, b.Task.Sub), cmp.Compare(a.Task.Partition, b.Task.Partition))
	})
	return out
}

// lagOf is the difference of two times in ms, as far as a Duration reaches.
func lagOf(now, w int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	d := now - w
	switch {
	case w < 0 && d < now, d > most:
		d = most
	case d < -most:
		d = -most
	}
	return time.Duration(d) * time.Millisecond
}

// metricPeriod is how often the metrics of event time are brought up to date.
const metricPeriod = time.Second

// showWatermarks is the goroutine that brings the metrics of event time up to date. An app without event time has none.
func (e *Engine) showWatermarks(ctx context.Context) {
	tick := e.cfg.Clock.NewTicker(metricPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			e.watermarkMetrics()
		}
	}
}

func (e *Engine) watermarkMetrics() {
	m, now := e.cfg.Metrics, e.cfg.Clock.Now()
	m.watermark.Reset() // operators and inputs that have moved must not leave a series behind
	m.watermarkLag.Reset()
	m.holder.Reset()
	m.idle.Reset()
	lowest := make(map[string]Watermark)
	for _, x := range e.Watermarks() {
		if x.Holder.Topic != "" {
			m.holder.WithLabelValues(x.Operator, x.Holder.String()).Set(now.Sub(x.Holder.Since).Seconds())
		}
		if l, ok := lowest[x.Operator]; x.W != watermark.Unknown && (!ok || x.W < l.W) {
			lowest[x.Operator] = x
		}
	}
	for op, x := range lowest {
		m.watermark.WithLabelValues(op).Set(float64(x.W))
		m.watermarkLag.WithLabelValues(op).Set(x.Lag.Seconds())
	}
	for _, t := range e.mgr.snapshot() {
		for _, in := range t.inputs {
			if t.sub.settings(in.source) == nil {
				continue
			}
			v := 0.0
			if in.idle.Load() {
				v = 1
			}
			m.idle.WithLabelValues(in.topic, strconv.Itoa(int(in.partition))).Set(v)
		}
	}
}

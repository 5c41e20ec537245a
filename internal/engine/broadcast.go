package engine

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/watermark"
)

// A task tells the readers of its repartition topics how far its event time has got: the last record a transaction puts
// into each partition of such a topic is a control record with the watermarks of the worker's tasks. It lies in the same
// transaction as the data it covers, so an abort takes back both; what a task remembers having announced is therefore
// replaced at a commit only. A memory that survived an abort would keep a watermark from its readers until the refresh.

var announcing = watermark.BroadcastOptions{
	Granularity: 100 * time.Millisecond, Interval: 200 * time.Millisecond, Refresh: 10 * time.Second,
}

// announces reports whether the task has something to announce in its repartition topics.
func (t *task) announces(nowMs int64) bool {
	t.outgoing = t.proc.Outgoing(t.outgoing[:0])
	for i, o := range t.outgoing {
		if t.told[i].Due(nowMs, o.W, o.State, announcing) {
			return true
		}
	}
	return false
}

// announce adds the control records of a flight: one per partition of every repartition topic one of whose writers has
// news. Its tasks' outputs come before, in every partition.
func (w *worker) announce(f *flight, nowMs int64) {
	for i := range f.tasks {
		ft := &f.tasks[i]
		if len(ft.task.told) > 0 && ft.told == nil {
			w.announceSub(f, ft.task.sub, nowMs)
		}
	}
}

// announceSub does it for the tasks of one sub-topology.
func (w *worker) announceSub(f *flight, s *sub, nowMs int64) {
	var controls []watermark.Control
	var sinks []int
	for i := range f.tasks {
		ft := &f.tasks[i]
		t := ft.task
		if t.sub != s {
			continue
		}
		ft.told = append([]watermark.Broadcast(nil), t.told...)
		t.outgoing = t.proc.Outgoing(t.outgoing[:0])
		if controls == nil {
			controls = make([]watermark.Control, len(t.outgoing))
			sinks = make([]int, len(t.outgoing))
		}
		for n, o := range t.outgoing {
			sinks[n] = o.Sink
			if !t.told[n].Due(nowMs, o.W, o.State, announcing) {
				continue
			}
			ft.told[n].Sent(nowMs, o.W, o.State)
			controls[n].Entries = append(controls[n].Entries, watermark.Entry{
				Task: uint32(t.id.Partition), State: o.State, W: o.W, Seq: ft.seq,
			})
		}
	}
	generation := int32(0)
	if w.e.cfg.Guarantee == AtLeastOnce {
		// Under transactions the sequence of a task's commits orders them alone. Without, an instance that does not know it
		// has lost the task may still write; the generation tells them apart.
		_, generation, _ = w.e.source.metadata()
	}
	for n := range controls {
		c := &controls[n]
		if len(c.Entries) == 0 {
			continue
		}
		sink := &s.sinks[sinks[n]]
		c.Kind, c.Writer = watermark.KindWatermark, watermark.WriterID(s.Sinks[sinks[n]].Repartition)
		c.Tasks, c.Generation = uint32(s.tasks), uint64(max(generation, 0))
		value := c.Append(nil)
		for p := range sink.partitions {
			r := w.newRecord()
			r.Topic, r.Partition, r.Value, r.Timestamp = sink.name, p, value, time.UnixMilli(nowMs)
			r.Headers = []kgo.RecordHeader{{Key: watermark.ControlHeader, Value: controlMark}}
			w.emit(r)
		}
		w.e.cfg.Metrics.controls.WithLabelValues(s.id).Add(float64(sink.partitions))
	}
}

var controlMark = []byte{1}

package engine

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/watermark"
)

// firingsPerTurn bounds how many windows and timers fire before the worker looks at the clock and at the size of what is
// uncommitted.
const firingsPerTurn = 256

// controlsPerCommit bounds how many control records without news a task reads before it commits that it has: until then
// they cannot be purged, and a restart reads them again.
const controlsPerCommit = 1000

// isControl tells the control records of a repartition topic from its data by their one header.
func (in *input) isControl(r *kgo.Record) bool {
	return in.internal && r.Key == nil && len(r.Headers) == 1 && r.Headers[0].Key == watermark.ControlHeader
}

// control processes a control record. It leaves something to commit only if it has told something new.
func (w *worker) control(t *task, in *input, r *kgo.Record) bool {
	if err := t.proc.Control(in.source, r.Value); err != nil {
		w.e.fail(&RecordError{Topic: in.topic, Partition: in.partition, Offset: r.Offset, Stage: "control", Err: err})
		return false
	}
	in.advance(r)
	if t.proc.Moved() || in.position-in.committed > controlsPerCommit {
		t.dirty = true
	}
	return true
}

// advance brings a task's operators to the watermark its sources have reached, as far as the slice of time and the limit
// of what may be uncommitted allow. It reports whether the task may process its next record: firings that do not fit into
// a transaction go on in the next one, and the task reads nothing until they are done.
func (w *worker) advance(t *task, start time.Time) bool {
	for t.proc.Moved() {
		before := t.proc.Effects()
		done, err := t.proc.Advance(firingsPerTurn)
		if t.proc.Effects() != before {
			t.dirty = true
		}
		if err != nil {
			w.betweenRecords(t, err)
			return false
		}
		if done {
			return true
		}
		if w.overFull() {
			w.forced = true
			return false
		}
		if w.e.cfg.Clock.Now().Sub(start) >= slice {
			return false
		}
	}
	return true
}

// betweenRecords deals with an error of what no record has caused: a firing or a timer. Like a transaction the broker
// refuses, it is taken back, and the next ones get smaller until the record that has moved the watermark is alone.
func (w *worker) betweenRecords(t *task, err error) {
	if storeFailure(err) {
		w.broken = &brokenTask{t, err}
		return
	}
	w.log.Warn("a firing has failed", zap.Stringer("task", t.id), zap.Error(err))
	w.narrow(&flight{records: w.sinceCommit, lastIn: w.lastIn, lastOff: w.lastOffset}, err)
	w.abortSoon("refused")
}

// tick lets tasks do what processing time asks for, and makes those commit that have something to announce. It runs at
// every commit tick, with no flight in the air.
func (w *worker) tick(nowMs int64) {
	for _, t := range w.tasks {
		if !t.sub.Timed || TaskState(t.phase.Load()) == Closed || t.lease.lost() {
			continue
		}
		if t.proc.NextTick() <= nowMs && !w.tickTask(t, nowMs) {
			return
		}
		if t.announces(nowMs) {
			t.dirty = true
		}
	}
}

func (w *worker) tickTask(t *task, nowMs int64) bool {
	before := t.proc.Effects()
	err := t.proc.Tick(nowMs)
	if t.proc.Effects() != before {
		t.dirty = true
	}
	if err != nil {
		w.betweenRecords(t, err)
		return false
	}
	return true
}

// eventTime returns the watermark of a task as its offset metadata tells it: the lowest of its operators.
func (t *task) eventTime() int64 {
	t.marks = t.proc.Watermarks(t.marks[:0])
	if len(t.marks) == 0 {
		return changelog.NoWatermark
	}
	w := int64(math.MaxInt64)
	for _, m := range t.marks {
		w = min(w, m.W)
	}
	return w
}

// steady is the processing time of tasks in ms: the wall clock at the start of the instance plus what has passed since. A
// clock that is set back does not make a timer wait, and one that is set forward fires none early.
func (e *Engine) steady() int64 { return e.steadyAt(e.cfg.Clock.Now()) }

// steadyAt is steady at a time of the clock.
func (e *Engine) steadyAt(now time.Time) int64 { return e.started.Add(now.Sub(e.started)).UnixMilli() }

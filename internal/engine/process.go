package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// runTask processes a task's records for one slice of time (step 1) and reports whether there was anything to do.
func (w *worker) runTask(t *task, start time.Time) (worked bool) {
	n := 0
	t.holdsBack = false
	maxIdle := w.e.cfg.MaxTaskIdle.Milliseconds()
	nowMs := start.UnixMilli()
	single := len(t.inputs) == 1
	t.proc.AlignTo(w.e.low(t.sub.group, single))
	if t.sub.Timed {
		t.proc.SetNow(w.e.steadyAt(start))
	}
	for {
		if t.proc.Moved() {
			worked = true // firings need no record
			if !w.advance(t, start) {
				break
			}
		}
		var in *input
		if single {
			if in = t.inputs[0]; t.proc.TooFarAhead(in.source) {
				w.ahead.Store(true)
				t.holdsBack = true
				break
			}
		} else if in = t.pick(nowMs, maxIdle); in == nil {
			break
		}
		r := in.head()
		if r == nil {
			break
		}
		if r.Attrs.IsControl() {
			in.advance(r) // a transaction marker: nothing to do, but the position moves
			n++
			continue
		}
		if in.isControl(r) {
			if !w.control(t, in, r) {
				break
			}
			n++
			continue
		}
		if n == 0 {
			w.e.cfg.CrashPoint(K1)
		}
		if !w.step(t, in, r) {
			break
		}
		n++
		w.sinceCommit++
		if n&63 == 0 {
			if n == 64 {
				w.e.cfg.CrashPoint(K2)
			}
			now := w.e.cfg.Clock.Now()
			if now.Sub(start) >= slice || w.overFull() {
				break
			}
		}
		if w.limiter.reached(w.sinceCommit) {
			w.forced = true
			break
		}
	}
	if n > 0 {
		w.e.processed.Add(int64(n))
		t.sub.records.Add(float64(n))
		if w.overFull() {
			w.forced = true
		}
	}
	return worked || n > 0
}

// step processes one record, or applies its policy. It reports false when the task must not go on.
func (w *worker) step(t *task, in *input, r *kgo.Record) bool {
	if t.poison != nil {
		tp := topicPartition{in.topic, in.partition}
		if p, ok := t.poison[tp]; ok && p.offset == r.Offset {
			return w.refuse(t, in, r, p.err)
		}
	}
	rec := &w.record
	rec.Topic, rec.Partition, rec.Offset = r.Topic, r.Partition, r.Offset
	rec.Time, rec.Key, rec.Value = r.Timestamp.UnixMilli(), r.Key, r.Value
	rec.Headers = nil
	if len(r.Headers) > 0 {
		// Operators may keep headers until the record is sent on: they need a slice of their own.
		rec.Headers = make([]processor.Header, len(r.Headers))
		for i, h := range r.Headers {
			rec.Headers[i] = processor.Header(h)
		}
	}
	t.out.input = in
	before := t.proc.Effects()
	if err := t.proc.Process(in.source, rec); err != nil {
		var fault *processor.Error
		if !errors.As(err, &fault) {
			// State or output have failed, not the record: no policy may swallow that.
			w.broken = &brokenTask{t, err}
			return false
		}
		re := recordError(in, r, err)
		if t.proc.Effects() == before {
			return w.refuse(t, in, r, re)
		}
		// It has left something behind: take the transaction back and meet the record again, alone.
		if t.poison == nil {
			t.poison = make(map[topicPartition]poisoned)
		}
		t.poison[topicPartition{in.topic, in.partition}] = poisoned{r.Offset, re}
		w.abortSoon("record error")
		return false
	}
	in.advance(r)
	t.dirty = true
	w.lastIn, w.lastOffset = in, r.Offset
	return true
}

// storeFailure says whether an error comes from the database and not from the record.
func storeFailure(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrStorage) || errors.Is(err, store.ErrClosed)
}

// refuse applies the error policy to a record that has left nothing behind.
func (w *worker) refuse(t *task, in *input, r *kgo.Record, re *RecordError) bool {
	var dead *kgo.Record
	if w.e.cfg.OnError == DeadLetter {
		dead = w.deadLetter(r, re)
		if n, d := deadLetterSize(dead), &w.e.deadLetters; n > d.maxBytes {
			re.Err = fmt.Errorf("%w; its dead letter of %d bytes does not fit topic %s, whose max.message.bytes is %d", re.Err, n, d.name, d.maxBytes)
			dead = nil
		}
	}
	if dead == nil {
		w.failing = &failed{RecordError: re, sub: t.sub.id}
		w.forced = true
		return false
	}
	w.log.Warn("record sent to the dead-letter topic", zap.Stringer("task", t.id), zap.String("topic", in.topic),
		zap.Int32("partition", in.partition), zap.Int64("offset", r.Offset), zap.String("stage", re.Stage),
		zap.String("operator", re.Operator), zap.Error(re.Err))
	w.emit(dead)
	if w.refused == nil {
		w.refused = make(refusals)
	}
	w.refused[refusal{t.sub.id, re.Stage}]++
	in.advance(r)
	t.dirty = true
	return true
}

// recordError names the record that err is about.
func recordError(in *input, r *kgo.Record, err error) *RecordError {
	re := &RecordError{Topic: in.topic, Partition: in.partition, Offset: r.Offset, Stage: "process", Err: err}
	var pe *processor.Error
	if errors.As(err, &pe) {
		re.Operator, re.Stage, re.Key, re.Err, re.Stack = pe.Operator, pe.Stage, pe.Key, pe.Err, pe.Stack
	}
	return re
}

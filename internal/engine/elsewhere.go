package engine

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/watermark"
)

// Alignment across instances (semantics of align.go). While an instance has records to catch up with, it tells the others
// the lowest watermark of each group through the control topic, every two seconds, and reads what they tell. Between two
// reports the others are reckoned to go on at the pace they had (watermark.Reckoning), so that instances which read a
// backlog equally fast do not wait for each other's reports. A partition that itself waits for others is not told: it is not what
// they wait for, and goes on when they do. If it were told as one that stands still, two instances would wait for each other in turn,
// each until the next report. Whoever is silent for long, or no longer in the group, is not
// waited for: alignment bounds what windows hold, nothing hangs on it.

const (
	alignPeriod = 2 * time.Second        // between two reports
	alignSoon   = 500 * time.Millisecond // between the first few: one says nothing about the pace
	alignFew    = 4
	alignTick   = 250 * time.Millisecond // between two reckonings
)

// aligner is one instance's side of it. Only its own goroutine uses it.
type aligner struct {
	e        *Engine
	names    []string // of the groups
	position int64    // in the control topic, -1 before the first look
	heard    map[string][]watermark.Reckoning
	due      time.Time // of the next report
	reports  int       // since there is something to report
}

// align is the aligner's goroutine. An app without event time has none.
func (e *Engine) align(ctx context.Context) {
	a := &aligner{e: e, names: make([]string, e.groups), position: -1, heard: make(map[string][]watermark.Reckoning)}
	for _, s := range e.subs {
		if a.names[s.group] == "" {
			a.names[s.group] = s.id
		}
	}
	tick := e.cfg.Clock.NewTicker(alignTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			a.look(ctx)
		}
	}
}

// look reports and reads when it is time, and reckons where the others are.
func (a *aligner) look(ctx context.Context) {
	now := a.e.cfg.Clock.Now()
	lows := a.lows(func(w *worker) []atomic.Int64 { return w.lows })
	if (len(lows) > 0 || a.reports > 0) && !now.Before(a.due) && !a.e.mgr.alone() {
		moving := a.lows(func(w *worker) []atomic.Int64 { return w.moving })
		if err := a.exchange(ctx, moving, len(lows) > 0); err != nil && ctx.Err() == nil {
			a.e.log.Debug("alignment with other instances", zap.Error(err))
		}
		if a.due = now.Add(alignPeriod); a.reports < alignFew {
			a.due = now.Add(alignSoon)
		}
	}
	a.reckon()
}

// lows returns the lowest watermarks of this instance, of the groups that have records to catch up with. One that is not
// known yet is no news for others.
func (a *aligner) lows(of func(*worker) []atomic.Int64) []changelog.Low {
	var out []changelog.Low
	for g, name := range a.names {
		low := int64(math.MaxInt64)
		for _, w := range a.e.workers {
			if l := of(w)[g].Load(); l != watermark.Unknown {
				low = min(low, l)
			}
		}
		if low != math.MaxInt64 {
			out = append(out, changelog.Low{Group: name, W: low})
		}
	}
	return out
}

// exchange tells the lows, or that there are none, and reads what the others have told since the last time, unless there is nothing
// to catch up with any more.
func (a *aligner) exchange(ctx context.Context, lows []changelog.Low, behind bool) error {
	ctx, cancel := context.WithTimeout(ctx, alignPeriod)
	defer cancel()
	e := a.e
	report := changelog.Lows{Instance: e.instance, Sent: e.cfg.Clock.Now().UnixMilli(), Groups: lows}
	if err := e.control.write(ctx, report.Record()); err != nil {
		return err
	}
	if a.reports++; !behind {
		// Who has nothing to catch up with is not ahead of anybody.
		a.reports, a.position = 0, -1
		clear(a.heard)
		return nil
	}
	tp := changelog.TopicPartition{Topic: e.names.Control()}
	bounds, err := changelog.ListBounds(ctx, e.admin, []changelog.TopicPartition{tp})
	if err != nil {
		return err
	}
	end := bounds[tp].HighWatermark
	if a.position < 0 {
		a.position = end
	}
	from := max(a.position, bounds[tp].Start)
	_, err = e.reader.Read(ctx, []changelog.Partition{{Topic: tp.Topic, From: from, Target: end}}, func(_ int, r *kgo.Record) error {
		a.position = r.Offset + 1
		return a.hear(r)
	}, func(int, int64, int64) {})
	if err == nil {
		a.position = end
	}
	return err
}

// hear takes in a record of the control topic. One that cannot be read is passed over: at the start it would be refused.
func (a *aligner) hear(r *kgo.Record) error {
	l, ok, err := changelog.ParseLows(string(r.Key), r.Value)
	if !ok || l.Instance == a.e.instance {
		return nil
	}
	if err != nil {
		a.e.log.Warn("control record cannot be read", zap.Int64("offset", r.Offset), zap.Error(err))
		return nil
	}
	if len(l.Groups) == 0 {
		delete(a.heard, l.Instance)
		return nil
	}
	next := make([]watermark.Reckoning, len(a.names))
	copy(next, a.heard[l.Instance])
	for g, name := range a.names {
		told := false
		for _, low := range l.Groups {
			if low.Group == name {
				next[g].Report(low.W, l.Sent, a.e.steady())
				told = true
			}
		}
		if !told {
			next[g] = watermark.Reckoning{}
		}
	}
	a.heard[l.Instance] = next
	return nil
}

// reckon shows the workers where the others are.
func (a *aligner) reckon() {
	now := a.e.cfg.Clock.Now()
	wall, steady := now.UnixMilli(), a.e.steadyAt(now)
	changed := false
	for g := range a.names {
		low := int64(math.MaxInt64)
		for instance, groups := range a.heard {
			l, ok := groups[g].Low(wall, steady, 2*alignPeriod.Milliseconds())
			if ok && a.e.mgr.listed(instance) {
				low = min(low, l)
			}
		}
		changed = a.e.elsewhere[g].Swap(low) != low || changed
	}
	if !changed {
		return
	}
	for _, w := range a.e.workers {
		if w.ahead.Load() {
			w.signal()
		}
	}
}

package engine

import (
	"math"
	"sync/atomic"

	"github.com/tidemark/tidemark/watermark"
)

// Alignment. While a backlog is read, a partition that is far ahead of another one fills windows that cannot fire. Its
// records wait when its watermark is more than MaxDrift above the lowest of the instance: of all partitions, in whichever
// tasks, that have records to catch up with and belong to connected sub-topologies. A partition that is read to its end
// holds nobody up: it cannot go faster. One that has records and no watermark yet holds up everybody who has. What other
// instances read counts as they tell it, see elsewhere.go.
//
// Each worker shows the lowest watermark of its own tasks after every round; a task looks at those of all workers before
// its slice. The partition with the lowest watermark is never the one that waits.

// connect gives sub-topologies that are connected by a topic the same group.
func (e *Engine) connect() {
	for i, s := range e.subs {
		s.group = i
	}
	e.groups = len(e.subs)
	for changed := true; changed; {
		changed = false
		for _, s := range e.subs {
			for _, k := range s.sinks {
				if o := e.byTopic[k.name]; o != nil && o.group != s.group {
					o.group = min(o.group, s.group)
					s.group = o.group
					changed = true
				}
			}
		}
	}
	e.elsewhere = make([]atomic.Int64, e.groups)
	for g := range e.elsewhere {
		e.elsewhere[g].Store(math.MaxInt64)
	}
	for _, w := range e.workers {
		w.lows = make([]atomic.Int64, e.groups)
		for g := range w.lows {
			w.lows[g].Store(math.MaxInt64)
		}
		w.shownLows = make([]int64, e.groups)
		w.moving = make([]atomic.Int64, e.groups)
		for g := range w.moving {
			w.moving[g].Store(math.MaxInt64)
		}
		w.shownMoving = make([]int64, e.groups)
	}
}

// showLows publishes the lowest watermark per group of the worker's inputs that have records to catch up with, and wakes
// the workers that wait for it.
func (w *worker) showLows() {
	for g := range w.shownLows {
		w.shownLows[g], w.shownMoving[g] = math.MaxInt64, math.MaxInt64
	}
	for _, t := range w.tasks {
		if !t.sub.Timed || TaskState(t.phase.Load()) != Running || t.lease.lost() {
			continue
		}
		for _, in := range t.inputs {
			if t.sub.settings(in.source) == nil || in.position >= in.end.Load() && in.q.bytes.Load() == 0 {
				continue
			}
			if at, idle := t.proc.Reached(in.source); !idle {
				g := t.sub.group
				w.shownLows[g] = min(w.shownLows[g], at)
				if !t.proc.TooFarAhead(in.source) {
					w.shownMoving[g] = min(w.shownMoving[g], at)
				}
			}
		}
	}
	changed := false
	for g, low := range w.shownLows {
		changed = w.lows[g].Swap(low) != low || changed
		w.moving[g].Store(w.shownMoving[g])
	}
	if !changed {
		return
	}
	for _, o := range w.e.workers {
		if o != w && o.ahead.Load() {
			o.signal()
		}
	}
}

// low returns the lowest watermark of a group, watermark.Unknown if an input of this instance with records to read has
// none. For a task with several inputs that does not count: which of them comes first is a matter of their timestamps.
func (e *Engine) low(group int, single bool) int64 {
	low := e.elsewhere[group].Load()
	for _, w := range e.workers {
		if l := w.lows[group].Load(); single || l != watermark.Unknown {
			low = min(low, l)
		}
	}
	return low
}

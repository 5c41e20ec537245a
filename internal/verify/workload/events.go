package workload

import (
	"slices"
	"time"
)

// The workload events has times of its own: a source partition's watermark is the highest time in it less EventDelay, an
// operator takes records until the watermark is its lateness past the end of their window, and ids are told apart for
// EventHorizon.
const (
	EventDelay    = time.Hour
	EventLateness = 2 * time.Hour
	EventHorizon  = 24 * time.Hour

	TumblingSize = 3 * time.Hour
	HoppingSize  = 3 * time.Hour
	HoppingHop   = time.Hour
	SessionGap   = 30 * time.Minute
	// DayZone is the zone of the calendar days. The input crosses a day of 23 hours.
	DayZone = "Europe/Berlin"
)

// EventStart is the time at which the events begin.
func EventStart() time.Time { return time.Date(2024, 3, 30, 3, 0, 0, 0, time.UTC) }

// DedupStore is the store, and the operator, that tells ids apart.
const DedupStore = "ids"

// Event is one input. ID is unique in a run, but an event may be sent again: the same in every part. An End only moves the
// watermark of its partition.
type Event struct {
	ID     int64  `json:"id"`
	User   string `json:"user"`
	Time   int64  `json:"ts"` // ms
	Amount int64  `json:"amount"`
	End    bool   `json:"end,omitzero"`
}

// At returns the event time.
func (e Event) At() time.Time { return time.UnixMilli(e.Time) }

// Bag is what a window holds: the events that were folded into it, each by its id, and the sum of their amounts. It is
// immutable.
type Bag struct {
	Sum int64   `json:"sum"`
	IDs []int64 `json:"ids"`
}

// Add folds in an event.
func (b Bag) Add(e Event) Bag {
	return Bag{b.Sum + e.Amount, append(slices.Clip(b.IDs), e.ID)}
}

// Merge joins two bags.
func (b Bag) Merge(o Bag) Bag {
	return Bag{b.Sum + o.Sum, append(slices.Clip(b.IDs), o.IDs...)}
}

// EventKind is a kind of window.
type EventKind string

// The kinds of windows of the workload.
const (
	Tumbling EventKind = "tumbling"
	Hopping  EventKind = "hopping"
	Session  EventKind = "session"
	Calendar EventKind = "calendar"
	// Sliced are hopping windows that show one pane, when they are complete, and take nothing afterwards. They are kept in
	// another way.
	Sliced EventKind = "sliced"
)

// EventMode is what the panes of a window hold.
type EventMode string

// The modes of the workload.
const (
	Accumulating EventMode = "accumulating"
	Discarding   EventMode = "discarding"
	Retracting   EventMode = "retracting"
)

// EventOp is one windowed operator of the workload. All of them have the same input.
type EventOp struct {
	Name string
	Kind EventKind
	Mode EventMode
}

// Lateness returns how long after its end a window of the operator takes records.
func (o EventOp) Lateness() time.Duration {
	if o.Kind == Sliced {
		return 0
	}
	return EventLateness
}

// EventOps returns the operators: every kind in every mode, and one for windows that show one pane, whose value is the same
// in all modes.
func EventOps() []EventOp {
	var ops []EventOp
	for _, k := range []EventKind{Tumbling, Hopping, Session, Calendar} {
		for _, m := range []EventMode{Accumulating, Discarding, Retracting} {
			ops = append(ops, EventOp{string(k) + "-" + string(m), k, m})
		}
	}
	return append(ops, EventOp{"sliced", Sliced, Accumulating})
}

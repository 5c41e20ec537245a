package processor

import (
	"github.com/tidemark/tidemark/window"
)

// Reason says why an operator refuses a record for its time.
type Reason uint8

// The reasons, with the text they have in the headers of late records and in metrics.
const (
	Expired      Reason = iota // "expired": every window it belongs to is past its end plus the allowed lateness
	Suppressed                 // "late_suppressed": its windows have fired, and the operator takes no late records
	DedupHorizon               // "dedup_horizon": too old for its id to be looked up
	BadTime                    // "bad_timestamp": it has no timestamp
	Future                     // "future_timestamp": it is further ahead of the clock than MaxFuture
	Reasons                    // how many there are
)

// String returns the reason as headers and metrics have it.
func (r Reason) String() string {
	return [...]string{"expired", "late_suppressed", "dedup_horizon", "bad_timestamp", "future_timestamp"}[r]
}

// Late is a record refused for its time.
type Late struct {
	Record    *Record // the input record, as it came
	Operator  string
	Reason    Reason
	Windowed  bool          // Window says which
	Window    window.Bounds // the last one it would have belonged to
	Time      int64         // its event time, in ms
	Watermark int64         // what it was judged by
	By        int64         // how much too late, in ms
}

// Counters are what an operator has done since the task was built: in = folded + duplicates + late, plus what was
// dead-lettered, which the caller counts.
type Counters struct {
	In, Folded, Duplicates uint64
	Late                   [Reasons]uint64 // refused, in the late topic
	LateWindows            uint64          // windows that were too late for a record, which another window may have taken
	LateAdmitted           uint64          // folded after the watermark had passed
	Panes                  [3]uint64       // by window.Timing
	Suppressed             uint64          // firings that would have repeated the last value
	Unfired                uint64          // windows that were closed with data no pane has shown
	Retractions            uint64
	// Combined are records that pre-aggregation has taken, Hottest those of the key that had the most of them between two
	// commits.
	Combined, Hottest uint64
	Timers            uint64 // fired, of both domains
	MissedTicks       uint64 // runs of a periodic callback that no wake came for
}

// Minus returns what has been counted since an earlier state of the counters.
func (c Counters) Minus(o Counters) Counters {
	c.In, c.Folded, c.Duplicates = c.In-o.In, c.Folded-o.Folded, c.Duplicates-o.Duplicates
	c.LateWindows, c.LateAdmitted = c.LateWindows-o.LateWindows, c.LateAdmitted-o.LateAdmitted
	c.Suppressed, c.Unfired, c.Retractions = c.Suppressed-o.Suppressed, c.Unfired-o.Unfired, c.Retractions-o.Retractions
	c.Combined, c.Hottest = c.Combined-o.Combined, c.Hottest-o.Hottest
	c.Timers, c.MissedTicks = c.Timers-o.Timers, c.MissedTicks-o.MissedTicks
	for i := range c.Late {
		c.Late[i] -= o.Late[i]
	}
	for i := range c.Panes {
		c.Panes[i] -= o.Panes[i]
	}
	return c
}

// Counters returns the counters of all operators, by Op.
func (t *Task) Counters() []Counters { return t.c.counters }

// Operators returns the names of all operators, by Op.
func (t *Task) Operators() []string { return t.c.operators }

// refuse sends the input record to the late topic. The operator has left nothing behind for it.
func (c *Context) refuse(op Op, l Late) error {
	l.Record, l.Operator, l.Time = c.rec, c.operators[op], c.time
	if err := c.out.Late(&l); err != nil {
		return c.sendError(op, c.key, err)
	}
	c.effects++
	c.counters[op].Late[l.Reason]++
	return nil
}

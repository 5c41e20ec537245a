package window

import "fmt"

// Timing says where a pane stands to the end of its window.
type Timing uint8

// A window emits any number of early panes, at most one on-time pane, and any number of late ones, in this order.
const (
	TimingEarly Timing = iota
	TimingOnTime
	TimingLate
)

// String returns EARLY, ON_TIME or LATE.
func (t Timing) String() string {
	switch t {
	case TimingEarly:
		return "EARLY"
	case TimingOnTime:
		return "ON_TIME"
	case TimingLate:
		return "LATE"
	}
	return fmt.Sprintf("timing %d", uint8(t))
}

// Pane is one firing of one window of one key.
type Pane struct {
	Bounds
	// Timing is early, on time or late.
	Timing Timing
	// Index counts the panes of the window from 0. For sessions that were merged it goes on from the highest.
	Index int
	// NonSpeculative counts the panes that are not early from 0; it is -1 for early ones.
	NonSpeculative int
	// First is set if Index is 0.
	First bool
	// Last is a promise that no pane of the window follows. Its absence promises nothing.
	Last bool
	// Watermark is that of the operator when the pane was emitted.
	Watermark int64
	// MaxTime is the latest time of a record in the window: the time of the output record.
	MaxTime int64
}

package query

import "math"

// Consistency is what state a question may be answered from.
type Consistency uint8

const (
	// Committed asks for the last commit of the task, from the instance that runs it: the default.
	Committed Consistency = iota
	// Stale takes the state of a task that is still being restored as well, as far as it has come; the answer says how far
	// it is behind.
	Stale
)

// NoWatermark is the watermark of a task that has none.
const NoWatermark = math.MinInt64

// Want is how new an answer must be. The zero value asks for the last commit. A question waits until its wishes are met,
// at most until its deadline.
type Want struct {
	Consistency Consistency
	// MaxLag is the greatest lag of a Stale answer, in records of changelogs; 0: any.
	MaxLag int64
	// MinWatermark is the event time, in ms, that the task must have reached, if HasMinWatermark.
	MinWatermark    int64
	HasMinWatermark bool
	// Position is what the answer must reflect, nil for nothing.
	Position Position
}

// Meta says what an answer was read from.
type Meta struct {
	Task Task
	// Seq is the number of the commit, counted per task from 1; 0 before the first.
	Seq uint64
	// Watermark is the event time of the task at that commit, in ms; NoWatermark if it has none.
	Watermark int64
	// Time is when the commit was made, in ms since 1970; 0 if that is not known.
	Time int64
	// Position names the commit: whoever asks for it later gets nothing earlier.
	Position Position
	// Inputs are the records of input topics that the state reflects, the last one of each partition the task reads.
	Inputs Position
	// Stale says that the state is of a task that does not run: Lag records of changelogs are missing.
	Stale bool
	Lag   int64
}

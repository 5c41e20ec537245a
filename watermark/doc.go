// Package watermark says how far event time has come: generators that read it
// off the records of a partition, the rules that combine the inputs of a node,
// the state machine that finds silent partitions, and the control records that
// carry watermarks through repartition topics.
//
// All times are int64 milliseconds since 1970 unless a type says otherwise. A
// watermark W promises that no further record with a time <= W will come,
// except late ones: the window [s,e) is complete when W >= e-1. A watermark
// never falls. Arithmetic saturates: no sum of times wraps around.
//
// The package is pure. It must never read a clock, do I/O, or start a
// goroutine; the time of day is an argument where a rule needs it. Its values
// belong to one goroutine at a time, the worker of the task that owns them.
package watermark

import "math"

const (
	// Unknown is the watermark of an input of which nothing is known yet.
	Unknown = math.MinInt64
	// Finished is the watermark of an input that will bring no further record.
	Finished = math.MaxInt64
)

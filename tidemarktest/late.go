package tidemarktest

import (
	"slices"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// LateRecord is a record that an operator has refused for its time: what goes to the topic of late records.
type LateRecord struct {
	Topic      string // where it was read; behind a repartition the internal topic
	Partition  int
	Offset     int64
	Key, Value []byte // as they came, nil for null
	Headers    []processor.Header
	Operator   string
	Reason     processor.Reason
	Windowed   bool // Window says which
	Window     window.Bounds
	Time       int64 // its event time, in ms
	Watermark  int64 // what it was judged by
	By         int64 // how much too late, in ms
}

func lateOf(l *processor.Late) LateRecord {
	r := l.Record
	return LateRecord{
		Topic: r.Topic, Partition: int(r.Partition), Offset: r.Offset, Key: r.Key, Value: r.Value,
		Headers: slices.Clone(r.Headers), Operator: l.Operator, Reason: l.Reason, Windowed: l.Windowed, Window: l.Window,
		Time: l.Time, Watermark: l.Watermark, By: l.By,
	}
}

// DeadLetter is a record that could not be processed, under Options.DeadLetter.
type DeadLetter struct {
	Topic      string
	Partition  int
	Offset     int64
	Key, Value []byte // as they came, nil for null
	Err        error
}

// Late returns all late records committed so far.
func (d *Driver) Late() []LateRecord { return slices.Clone(d.c.late) }

// DeadLetters returns all dead letters committed so far.
func (d *Driver) DeadLetters() []DeadLetter { return slices.Clone(d.c.dead) }

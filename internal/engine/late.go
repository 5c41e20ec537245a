package engine

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/window"
)

// Late implements processor.Output: the record goes to the topic of late records in the same transaction, as it came,
// with where it came from and why it was refused in headers.
func (o *output) Late(l *processor.Late) error {
	w := o.task.worker
	d := &w.e.late
	in := l.Record
	r := w.newRecord()
	r.Topic, r.Partition, r.Key, r.Value = d.name, in.Partition%d.partitions, in.Key, in.Value
	// The time of a late record may be one the broker does not take; the header has it.
	r.Timestamp = w.e.cfg.Clock.Now()
	for _, h := range in.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	add := func(key string, value []byte) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "tm-" + key, Value: value})
	}
	number := func(key string, n int64) { add(key, strconv.AppendInt(nil, n, 10)) }
	add("late-reason", []byte(l.Reason.String()))
	add("late-op", []byte(l.Operator))
	if l.Windowed {
		add("late-win", window.AppendBoundsHeader(nil, l.Window))
	}
	number("late-wm", l.Watermark)
	number("late-by", l.By)
	number("late-time", l.Time)
	src := append([]byte(in.Topic), '/')
	src = append(strconv.AppendInt(src, int64(in.Partition), 10), '/')
	add("src", strconv.AppendInt(src, in.Offset, 10))
	w.emit(r)
	return nil
}

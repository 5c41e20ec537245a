package engine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/processor"
)

// output receives what a task's operators send (processor.Output).
type output struct {
	task  *task
	input *input // of the record being processed, nil during a flush
}

// sinkTopic is a topic the sub-topology writes, with what the broker would refuse.
type sinkTopic struct {
	name       string
	partitions int32
	maxBytes   int   // max.message.bytes
	maxAheadMs int64 // message.timestamp.after.max.ms
	maxAgeMs   int64 // message.timestamp.before.max.ms
}

// recordOverhead is what a batch with a single record takes beside key and value.
const recordOverhead = 96

// Send implements processor.Output.
func (o *output) Send(sink int, by []byte, ms int64, key, value []byte, headers []processor.Header) error {
	t := o.task
	st := &t.sub.sinks[sink]
	w := t.worker
	size := len(key) + len(value) + recordOverhead
	for i := range headers {
		size += len(headers[i].Key) + len(headers[i].Value) + 8
	}
	if size > st.maxBytes {
		return &processor.Error{Stage: "oversize", Key: key, Err: fmt.Errorf("record of %d bytes for topic %s, whose max.message.bytes is %d", size, st.name, st.maxBytes)}
	}
	if st.maxAheadMs < 1<<62 || st.maxAgeMs < 1<<62 {
		// One timestamp the broker refuses costs the whole batch.
		now := w.e.coarseMs()
		if ms-now > st.maxAheadMs || now-ms > st.maxAgeMs {
			return &processor.Error{Stage: "timestamp", Key: key, Err: fmt.Errorf("timestamp %d is outside of what topic %s accepts (message.timestamp.after.max.ms %d, message.timestamp.before.max.ms %d)",
				ms, st.name, st.maxAheadMs, st.maxAgeMs)}
		}
	}
	partition := t.id.Partition % st.partitions
	if by != nil {
		partition = processor.PartitionOf(by, st.partitions)
	}
	r := w.newRecord()
	r.Topic, r.Partition, r.Key, r.Value = st.name, partition, key, value
	r.Timestamp = time.UnixMilli(ms)
	if len(headers) > 0 {
		r.Headers = w.newHeaders(len(headers))
		for i, h := range headers {
			r.Headers[i] = kgo.RecordHeader(h)
		}
	}
	w.emit(r)
	return nil
}

// deadLetterSize is what a dead letter takes in a batch of its own.
func deadLetterSize(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value) + recordOverhead
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 8
	}
	return n
}

// deadLetter makes the dead-letter record of r: its bytes as they came, its origin and the reason in headers.
func (w *worker) deadLetter(r *kgo.Record, re *RecordError) *kgo.Record {
	d := &w.e.deadLetters
	out := &kgo.Record{
		Topic: d.name, Partition: r.Partition % d.partitions,
		Key: r.Key, Value: r.Value, Timestamp: w.e.cfg.Clock.Now(),
	}
	out.Headers = append(out.Headers, r.Headers...)
	add := func(k, v string) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: "tm-dead-" + k, Value: []byte(v)})
	}
	add("topic", r.Topic)
	add("partition", strconv.Itoa(int(r.Partition)))
	add("offset", strconv.FormatInt(r.Offset, 10))
	add("timestamp", strconv.FormatInt(r.Timestamp.UnixMilli(), 10))
	add("operator", re.Operator)
	add("stage", re.Stage)
	add("error", re.Err.Error())
	return out
}

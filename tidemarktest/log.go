package tidemarktest

import (
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// log is a topic: its partitions hold committed records only.
type log struct {
	name  string
	parts []partition
}

// partition is one partition of a log; the offset of a record is its index.
type partition struct {
	records []record
	silent  bool // declared idle, until the next record
}

// record is one record of a log.
type record struct {
	time       int64
	key, value []byte
	headers    []processor.Header
}

// isControl tells the control records of a repartition from its data.
func (r *record) isControl() bool {
	return r.key == nil && len(r.headers) == 1 && r.headers[0].Key == watermark.ControlHeader
}

func newLog(name string, partitions int) *log {
	return &log{name: name, parts: make([]partition, partitions)}
}

func (l *log) add(p int32, r record) int64 {
	part := &l.parts[p]
	part.records = append(part.records, r)
	part.silent = false
	return int64(len(part.records) - 1)
}

// changes is the changelog of one store: a list of changes per partition.
type changes [][]store.Change

// transaction is what an instance has produced since its last commit.
type transaction struct {
	sends []send
	late  []LateRecord
	dead  []DeadLetter
}

// send is a record on its way to a log.
type send struct {
	to        *log
	partition int32
	record
}

package processor

import (
	"strconv"

	"github.com/tidemark/tidemark/store"
)

// Header is one header of a record. Several headers may have the same key; their order is kept.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// Record is one input record. The caller reuses the struct and its Headers slice after Process has returned; the bytes
// of key, value and header values never change.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      int64  // event time, ms since the epoch
	Key       []byte // nil is null
	Value     []byte // nil is null
	Headers   []Header
}

// TaskID names a task: a sub-topology on one partition number.
type TaskID struct {
	Sub       string
	Partition int32
}

// String returns "<sub>/<partition>".
func (id TaskID) String() string { return id.Sub + "/" + strconv.Itoa(int(id.Partition)) }

// Output takes the records a task produces.
type Output interface {
	// Send hands over one record for the sink with this index in the sub-topology's list. Its partition is Kafka's default
	// for a record with the key by, murmur2, or for nil that of the task. The bytes of key, value and
	// header values never change again and may be kept; the headers slice is valid during the call only. An error ends
	// the processing of the record and comes back from Process as it is: an *Error, whose Operator may be left empty, if
	// this record cannot be sent, any other if none can.
	Send(sink int, by []byte, time int64, key, value []byte, headers []Header) error
	// Late hands over a record that an operator has refused for its time. It is valid during the call only, but for the
	// bytes of its key, value and header values. An error is that of Send.
	Late(r *Late) error
}

// Env is what a task gets from whoever runs it.
type Env struct {
	Task   TaskID
	Output Output
	State  *store.State // nil if the sub-topology has no stores
	Clocks []byte       // what AppendClocks returned at the last commit, nil at a first start
	Now    func() int64 // wall clock in ms, for Context.Now only; nil makes it return 0
}

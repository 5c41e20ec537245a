package watermark

import (
	"errors"
	"fmt"
	"hash/fnv"
)

const (
	// ControlHeader is the key of the one header of a control record.
	ControlHeader = "tm-c"
	// ControlValue is the value of that header.
	ControlValue = "\x01"
)

// ErrControl marks bytes that are not a control record: cut, damaged, or with
// fields that cannot be. Test with errors.Is.
var ErrControl = errors.New("not a control record")

// VersionError reports a format that this build does not read.
type VersionError struct {
	Format   string // "control record", "control record kind", "generator state", "vector state"
	Have     int    // the version or kind found
	Min, Max int    // those this build understands
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("watermark: %s %d, this build understands %d to %d", e.Format, e.Have, e.Min, e.Max)
}

// Kind is what a control record is about. 2 (barrier) and 3 (version) are reserved.
type Kind byte

// KindWatermark: the watermarks of upstream tasks.
const KindWatermark Kind = 1

// FlagIgnorable lets readers that do not know the kind or the version skip the record.
const FlagIgnorable byte = 1

// State of an upstream task.
type State byte

const (
	// Active: W holds back the tasks behind.
	Active State = iota
	// Idle: all inputs of the task are idle; the tasks behind do not wait for it.
	Idle
	// Done: the task will send nothing any more; its watermark is Finished.
	Done
)

// String names the state.
func (s State) String() string {
	switch s {
	case Active:
		return "active"
	case Idle:
		return "idle"
	case Done:
		return "finished"
	}
	return fmt.Sprintf("State(%d)", byte(s))
}

// Entry is what a control record says about one task.
type Entry struct {
	Task  uint32 // index of the task, its partition number
	State State
	W     int64
	Seq   uint64 // number of the task's commit
}

// Control is a control record: the last record of a transaction in a partition
// of a repartition topic, after the records its watermarks speak of.
type Control struct {
	Kind       Kind
	Flags      byte
	Epoch      uint64  // of the topology; grows with accepted changes
	Writer     uint32  // WriterID of the sub-topology that wrote it
	Tasks      uint32  // number of tasks of that sub-topology, as the writer knows it
	Generation uint64  // of the consumer group, as the writer knows it
	Entries    []Entry // tasks of the writing worker
	unknown    bool
}

// Ignorable reports whether readers that do not know the kind may skip the record.
func (c *Control) Ignorable() bool { return c.Flags&FlagIgnorable != 0 }

// Known reports whether this build understands the record. A parsed record that
// is not known is ignorable, and has only Kind and Flags.
func (c *Control) Known() bool { return !c.unknown && c.Kind == KindWatermark }

// WriterID is the id under which a sub-topology writes control records: a
// stable hash (FNV-1a) of its id. The topology checks that no two writers of
// one repartition topic share it.
func WriterID(sub string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(sub))
	return h.Sum32()
}

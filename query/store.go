package query

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what the rows of a store are.
type Kind string

// The kinds of stores that can be asked.
const (
	KeyValue  Kind = "key-value" // one value per key
	Window    Kind = "window"    // one value per key and window
	Session   Kind = "session"   // one value per key and session
	Versioned Kind = "versioned" // a history per key
	List      Kind = "list"      // a list per key
	Expiring  Kind = "expiring"  // one value per key, for a time
)

// Format turns encoded keys or values into JSON and back.
type Format interface {
	// Schema describes the encoding, see codec.Codec.
	Schema() string
	// JSON appends a JSON view of encoded bytes.
	JSON(dst, encoded []byte) ([]byte, error)
	// Parse appends the encoding of a JSON value. The error says what the type is.
	Parse(dst, json []byte) ([]byte, error)
	// ParseText appends the encoding of text as people write it in a path or on a command line: a string without quotes,
	// bytes in base64, everything else as JSON. The error says what the type is.
	ParseText(dst []byte, text string) ([]byte, error)
}

// Store describes a store that can be asked.
type Store struct {
	// ID is the name of the store, unique in the app.
	ID string
	// Kind says which questions make sense.
	Kind Kind
	// Sub is the sub-topology whose tasks hold the store; Partitions is how many tasks it has, 0 until the app has looked at
	// its topics.
	Sub        string
	Partitions int32
	// Topics are the topics the tasks read: positions in them can be waited for. Repartition topics of the app are not
	// among them.
	Topics []string
	// Windows describes the windows of a windowed aggregate, empty for others.
	Windows string
	// Slices says that the rows the store keeps are slices that several windows share. Reads make windows of them, see
	// Sliced; a watch tells the slices.
	Slices bool
	// Key and Value are the encodings.
	Key, Value Format

	// Index is the place of the store in the specs of its sub-topology.
	Index int
	// Panes says that values begin with the state of a pane.
	Panes bool
	// StartOf returns the start of the window with an end, for stores of kind Window.
	StartOf func(end int64) int64
	// Sliced says how windows are made of slices, for stores that keep those.
	Sliced *Sliced
}

// Task is one partition of a sub-topology.
type Task struct {
	Sub       string
	Partition int32
}

func (t Task) String() string { return fmt.Sprintf("%s/%d", t.Sub, t.Partition) }

// ParseTask reads what String has written.
func ParseTask(text string) (t Task, ok bool) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return Task{}, false
	}
	p, err := strconv.ParseUint(text[i+1:], 10, 31)
	if err != nil {
		return Task{}, false
	}
	return Task{text[:i], int32(p)}, true
}

// Host is one instance of an app.
type Host struct {
	// Instance is its random id.
	Instance string
	// Endpoint is where it answers queries, host:port; empty if it does not.
	Endpoint string
	Rack     string
}

// Map says which instance runs which task. It does not change; a newer one has a higher generation.
type Map struct {
	// Generation is that of the group, -1 before the first.
	Generation int32
	// Self is the index of this instance in Hosts, -1 if it is not there.
	Self  int
	Hosts []Host
	// Owners holds per sub-topology an index into Hosts for every partition, -1: nobody at the moment.
	Owners map[string][]int
}

// Owner returns the host that runs a task.
func (m *Map) Owner(t Task) (h Host, self, ok bool) {
	owners := m.Owners[t.Sub]
	if t.Partition < 0 || int(t.Partition) >= len(owners) || owners[t.Partition] < 0 {
		return Host{}, false, false
	}
	i := owners[t.Partition]
	return m.Hosts[i], i == m.Self, true
}

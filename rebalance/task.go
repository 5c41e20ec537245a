package rebalance

import (
	"cmp"
	"strconv"
	"strings"
)

// TaskID names a task: one partition number of one sub-topology.
type TaskID struct {
	Sub       string
	Partition int32
}

// String returns "<sub>/<partition>".
func (t TaskID) String() string { return t.Sub + "/" + strconv.Itoa(int(t.Partition)) }

// Compare orders tasks by sub-topology, then partition.
func (t TaskID) Compare(o TaskID) int {
	return cmp.Or(strings.Compare(t.Sub, o.Sub), cmp.Compare(t.Partition, o.Partition))
}

// Sub is a sub-topology as placement sees it: an id and the topics it reads.
type Sub struct {
	ID     string
	Topics []string // full names, repartition topics included, sorted
}

package serve

import (
	"fmt"

	"github.com/tidemark/tidemark/query"
)

// gaps are the partitions of a question that have no answer.
type gaps struct {
	partitions []int32
	first      error
}

// add notes the error of a partition. It returns it if it is about the question and not about the partition.
func (g *gaps) add(p int32, err error) error {
	switch reasoned(err).Reason {
	case query.NotOwner, query.NoOwner, query.Restoring, query.Moved, query.WatermarkNotReached, query.PositionNotReached,
		query.TooStale, query.Deadline:
	default:
		return err
	}
	g.partitions = append(g.partitions, p)
	if g.first == nil {
		g.first = err
	}
	return nil
}

// err is the error of a question about n partitions with these gaps: of one partition its own.
func (g *gaps) err(st *query.Store, partial bool, n int) error {
	switch {
	case g.first == nil || partial:
		return nil
	case n == 1 || is(g.first, query.NotOwner):
		return g.first
	}
	return &query.Error{
		Reason: query.Partial, Store: st.ID, Missing: g.partitions, Err: g.first,
		Message: fmt.Sprintf("partitions %v of store %s have no answer; allow_partial returns what there is", g.partitions, st.ID),
	}
}

// failPanics makes a panic on a goroutine of a question the error of its part.
func failPanics(err *error) {
	if p := recover(); p != nil {
		*err = query.Errorf(query.Failed, "panic: %v", p)
	}
}

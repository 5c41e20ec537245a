package client

import (
	"time"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Meta says what an answer was read from. Inputs is empty: the API does not tell them.
type Meta struct {
	query.Meta
	// Age is how long before the answer the commit was made, by the clock of the instance; 0 if that is not known.
	Age time.Duration
}

// metaOf reads the Meta of an answer. A position that cannot be read is an error, because to lose it would let later reads
// go back in time.
func metaOf(m *apiv1.Meta) (Meta, error) {
	if m == nil {
		return Meta{}, nil
	}
	p, err := query.ParsePosition(m.Position)
	if err != nil {
		return Meta{}, err
	}
	out := Meta{
		Meta: query.Meta{
			Seq: m.GetSeq(), Watermark: query.NoWatermark, Time: m.GetTime(), Position: p,
			Stale: m.Stale, Lag: m.Lag,
		},
		Age: time.Duration(m.GetAge()) * time.Millisecond,
	}
	out.Task, _ = query.ParseTask(m.Task)
	if m.Watermark != nil {
		out.Watermark = *m.Watermark
	}
	return out, nil
}

// metasOf reads the Metas of an answer about several tasks, by partition.
func metasOf(list []*apiv1.Meta) (map[int32]*Meta, error) {
	out := make(map[int32]*Meta, len(list))
	for _, m := range list {
		meta, err := metaOf(m)
		if err != nil {
			return nil, err
		}
		out[m.GetPartition()] = &meta
	}
	return out, nil
}

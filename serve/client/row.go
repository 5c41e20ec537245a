package client

import (
	"time"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Row is one row of a store.
type Row[K, V any] struct {
	Key   K
	Value V
	// Start and End are the bounds of the window or session: Start <= t < End. For a version Start is since when it is
	// valid. For other kinds they are zero.
	Start, End time.Time
	// Index is the place in the list.
	Index int64
	// Time is the timestamp of the row.
	Time time.Time
	// Deleted says that the row is gone, or no longer passes the filter; only in events.
	Deleted   bool
	Partition int32
	// Meta says what the row was read from. Rows of one partition and page share it.
	Meta *Meta
}

// row decodes a row.
func (r *Reader[K, V]) row(w *apiv1.Row, m *Meta) (out Row[K, V], err error) {
	out = Row[K, V]{Index: w.GetIndex(), Deleted: w.GetDeleted(), Partition: w.GetPartition(), Meta: m}
	set := func(to *time.Time, ms *int64) {
		if ms != nil {
			*to = time.UnixMilli(*ms)
		}
	}
	if w != nil {
		set(&out.Start, w.Start)
		set(&out.End, w.End)
		set(&out.Time, w.Time)
	}
	if out.Key, err = r.key.Decode(w.GetKey().GetRaw()); err != nil {
		return out, r.undecoded("key", err)
	}
	if w.GetValue() != nil {
		if out.Value, err = r.value.Decode(w.Value.GetRaw()); err != nil {
			return out, r.undecoded("value", err)
		}
	}
	return out, nil
}

func (r *Reader[K, V]) undecoded(what string, err error) error {
	return &query.Error{Reason: query.Failed, Message: "a " + what + " of the store cannot be decoded", Store: r.name, Err: err}
}

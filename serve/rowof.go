package serve

import (
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// shape is how the rows of a question are shown, and which of them.
type shape struct {
	st     *query.Store
	raw    bool
	fields *fields
	filter *filter
}

// row makes the message of a row, nil if the filter does not let it pass.
func (h *shape) row(r *query.Row, partition int32) (*apiv1.Row, error) {
	out := &apiv1.Row{Deleted: r.Deleted, Partition: proto.Int32(partition)}
	if !r.Deleted {
		out.Time = proto.Int64(r.Time)
	}
	switch h.st.Kind {
	case query.Window, query.Session:
		out.Start, out.End = proto.Int64(r.Start), proto.Int64(r.End)
	case query.Versioned:
		out.Start = proto.Int64(r.Start)
	case query.List:
		out.Index = proto.Int64(r.Start)
	}
	var key, value []byte
	var err error
	if !h.raw || h.filter != nil {
		if key, err = h.st.Key.JSON(nil, r.Key); err != nil {
			return nil, h.unreadable(err)
		}
		if r.Value != nil && !r.Deleted {
			if value, err = h.st.Value.JSON(nil, r.Value); err != nil {
				return nil, h.unreadable(err)
			}
		}
	}
	if !r.Deleted {
		if pass, err := h.filter.keep(r, key, value); err != nil || !pass {
			return nil, err
		}
	}
	if h.raw {
		out.Key = &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: r.Key}}
		if r.Value != nil && !r.Deleted {
			out.Value = &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: r.Value}}
		}
		return out, nil
	}
	out.Key = &apiv1.Datum{Form: &apiv1.Datum_Json{Json: string(key)}}
	if value != nil {
		if value, err = h.fields.project(value); err != nil {
			return nil, h.unreadable(err)
		}
		out.Value = &apiv1.Datum{Form: &apiv1.Datum_Json{Json: string(value)}}
	}
	return out, nil
}

func (h *shape) unreadable(err error) error {
	return &query.Error{Reason: query.Failed, Message: "a row cannot be shown as JSON; ask for raw bytes", Store: h.st.ID, Err: err}
}

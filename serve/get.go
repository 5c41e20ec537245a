package serve

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Get implements the API.
func (v *service) Get(ctx context.Context, req *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	return answer(v.s, ctx, "Get", req, func(ctx context.Context, c *call) (*apiv1.GetResponse, error) {
		return v.s.get(ctx, c, req)
	})
}

func (s *Server) get(ctx context.Context, c *call, req *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	st, err := s.counted(ctx, req.Store)
	if err != nil {
		return nil, err
	}
	at, has, err := asOf(st, req.AsOf)
	if err != nil {
		return nil, err
	}
	key, err := s.key(st, req, req.Key != nil, req.RawKey != nil)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, query.Errorf(query.InvalidRequest, "a key is missing: key, json_key or raw_key")
	}
	task, err := partition(st, key, req.Partition)
	if err != nil {
		return nil, err
	}
	h := &shape{st: st, raw: c.raw, fields: c.fields}
	return route(ctx, s, c, part[*apiv1.GetResponse]{
		task: task, want: c.want,
		local: func(_ context.Context, v *query.View) (*apiv1.GetResponse, error) {
			row, err := s.find(v, h, key, at, has)
			meta := s.metaOf(v.Meta)
			if err != nil {
				return nil, err
			}
			if row == nil {
				return nil, &withMeta{&query.Error{Reason: query.KeyNotFound, Message: "the store has no row of that key", Store: st.ID, Task: task}, meta}
			}
			return &apiv1.GetResponse{Row: row, Meta: meta}, nil
		},
		remote: func(ctx context.Context, timeout string, client apiv1.QueriesClient) (*apiv1.GetResponse, error) {
			r := forwarded(req)
			r.Timeout, r.Partition = timeout, proto.Int32(task.Partition)
			return client.Get(ctx, r)
		},
	})
}

// asOf reads the time of a question for old values.
func asOf(st *query.Store, text string) (at int64, has bool, err error) {
	at, has, err = parseTime("as_of", text)
	if err == nil && has && st.Kind != query.Versioned {
		err = query.Errorf(query.WrongKind, "store %s is one of kind %s: it keeps no history, as_of has no meaning", st.ID, st.Kind)
	}
	return at, has, err
}

// find reads the row of a key, nil if there is none.
func (s *Server) find(v *query.View, h *shape, key []byte, at int64, has bool) (*apiv1.Row, error) {
	var r query.Row
	var ok bool
	var err error
	if has {
		r, ok, err = v.AsOf(h.st, key, at)
	} else {
		r, ok, err = v.Get(h.st, key)
	}
	if err != nil || !ok {
		return nil, err
	}
	row, err := h.row(&r, v.Task.Partition)
	if err != nil {
		return nil, err
	}
	if n := proto.Size(row); n > s.cfg.Limits.Bytes {
		return nil, query.Errorf(query.TooLarge, "a row of %d bytes exceeds the limit of %d for an answer", n, s.cfg.Limits.Bytes)
	}
	return row, nil
}

package serve

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Scan implements the API.
func (v *service) Scan(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return v.rows(ctx, "Scan", req)
}

// Windows implements the API.
func (v *service) Windows(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return v.rows(ctx, "Windows", req)
}

// Sessions implements the API.
func (v *service) Sessions(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return v.rows(ctx, "Sessions", req)
}

// History implements the API.
func (v *service) History(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return v.rows(ctx, "History", req)
}

// Values implements the API.
func (v *service) Values(ctx context.Context, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return v.rows(ctx, "Values", req)
}

// ask calls a method of another instance.
func ask(ctx context.Context, c apiv1.QueriesClient, method string, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	switch method {
	case "Windows":
		return c.Windows(ctx, req)
	case "Sessions":
		return c.Sessions(ctx, req)
	case "History":
		return c.History(ctx, req)
	case "Values":
		return c.Values(ctx, req)
	}
	return c.Scan(ctx, req)
}

func (v *service) rows(ctx context.Context, method string, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return answer(v.s, ctx, method, req, func(ctx context.Context, c *call) (*apiv1.RowsResponse, error) {
		if !c.hop {
			if err := v.s.scans.try(); err != nil {
				return nil, err
			}
			defer v.s.scans.done()
		}
		st, err := v.s.counted(ctx, req.Store)
		if err != nil {
			return nil, err
		}
		q, err := v.s.question(st, c, method, req)
		if err != nil {
			return nil, err
		}
		return v.s.gather(ctx, c, q, req)
	})
}

// limit returns how many rows a page may have. An instance with another limit may have forwarded the question.
func (s *Server) limit(c *call, n int32) (int, error) {
	switch most := s.cfg.Limits.Rows; {
	case c.hop && int(n) > most:
		return most, nil
	case n < 0 || int(n) > most:
		return 0, query.Errorf(query.InvalidRequest, "limit is between 1 and %d", most)
	case n == 0:
		return most, nil
	}
	return int(n), nil
}

// resume returns the partitions that are still to be read, and the token of the page before, one at the start if there was
// none.
func (s *Server) resume(q *question, req *apiv1.RowsRequest) (list []int32, one bool, t *pageToken, err error) {
	list, one, err = s.partitions(q.st, q.page.Key, req.Partition)
	if err != nil {
		return nil, false, nil, err
	}
	if req.PageToken == "" {
		return list, one, &pageToken{question: q.hash, read: commits{}, partition: list[0]}, nil
	}
	if t, err = parsePageToken(req.PageToken); err != nil {
		return nil, false, nil, err
	}
	if t.question != q.hash {
		return nil, false, nil, query.Errorf(query.TokenMalformed, "the page token is that of another question")
	}
	for len(list) > 0 && list[0] < t.partition {
		list = list[1:]
	}
	if len(list) == 0 || list[0] != t.partition {
		return nil, false, nil, query.Errorf(query.TokenMalformed, "the page token is about partition %d, which is none of this question", t.partition)
	}
	return list, one, t, nil
}

// page asks one task for a page that begins behind a token.
func (s *Server) page(ctx context.Context, c *call, q *question, req *apiv1.RowsRequest, t *pageToken, has room) (*onePage, error) {
	task := query.Task{Sub: q.st.Sub, Partition: t.partition}
	w := c.want
	w.Position = w.Position.Merge(t.read.position(task))
	return route(ctx, s, c, part[*onePage]{
		task: task, want: w,
		local: func(ctx context.Context, v *query.View) (*onePage, error) {
			if err := s.reads.wait(ctx); err != nil {
				return nil, err
			}
			defer s.reads.done()
			return s.read(ctx, v, q, t.after, has)
		},
		remote: func(ctx context.Context, timeout string, client apiv1.QueriesClient) (*onePage, error) {
			r := forwarded(req)
			r.Partition, r.Limit, r.Timeout = proto.Int32(t.partition), int32(has.rows), timeout
			r.PageToken, r.AllowPartial = t.String(), false
			out, err := ask(ctx, client, q.method, r)
			if err != nil {
				return nil, err
			}
			return theirPage(out, t, has)
		},
	})
}

// theirPage reads the answer of another instance about one task.
func theirPage(out *apiv1.RowsResponse, t *pageToken, has room) (*onePage, error) {
	p := &onePage{rows: out.Rows}
	if len(out.Metas) != 1 || out.Metas[0].GetPartition() != t.partition {
		return nil, query.Errorf(query.Failed, "an instance has answered for another task")
	}
	p.meta = out.Metas[0]
	if out.NextPageToken != "" {
		next, err := parsePageToken(out.NextPageToken)
		if err != nil || next.partition != t.partition || !next.begun {
			return nil, query.Errorf(query.Failed, "an instance has answered with a page token that is none")
		}
		p.next = next.after
	}
	size := 0
	for _, r := range p.rows {
		size += proto.Size(r)
	}
	if len(p.rows) > has.rows || size > has.bytes {
		// The other instance has answered with as much as a whole page takes.
		return nil, errFirst
	}
	return p, nil
}

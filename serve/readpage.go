package serve

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/store"
)

// chunk is how many rows are read at a time for one page.
const chunk = 256

// room is what a page still has room for.
type room struct{ rows, bytes int }

// onePage is a page of one task.
type onePage struct {
	rows []*apiv1.Row
	meta *apiv1.Meta
	// next is the last row read if there are more, else nil.
	next []byte
}

// read fills a page from one view. A page without any row, but with a next one, means that the filter let nothing pass.
func (s *Server) read(ctx context.Context, v *query.View, q *question, after []byte, has room) (*onePage, error) {
	out := &onePage{meta: s.metaOf(v.Meta)}
	if after == nil && q.hasAt {
		// Windows come by their ends: those that end at the moment, or before, do not contain it.
		after = store.AppendWindowKey(nil, q.at, nil)
	}
	visited := 0
	for want := min(chunk, has.rows); ; want = min(chunk, has.rows) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := q.page
		p.After, p.Rows, p.Bytes, p.Visit = after, want, int64(s.cfg.Limits.Bytes), 4*chunk
		rows, next, err := v.Read(ctx, q.st, p)
		if err != nil {
			return nil, err
		}
		fit, err := s.fit(ctx, q, v.Task.Partition, rows, &has, out)
		if err != nil {
			return nil, err
		}
		if fit < len(rows) {
			// The rest does not fit. The place behind the last that does is where a shorter page ends.
			if fit > 0 {
				p.Rows = fit
				if _, after, err = v.Read(ctx, q.st, p); err != nil {
					return nil, err
				}
			}
			if out.next = after; out.next == nil {
				return nil, errFirst
			}
			return out, nil
		}
		if next == nil {
			return out, nil
		}
		after = next
		if visited += max(len(rows), 1); has.rows == 0 || visited >= s.cfg.Limits.Visit {
			out.next = after
			return out, nil
		}
	}
}

// errFirst says that not even the first row of a task fits into what is left of a page: its rows begin the next one.
var errFirst = errors.New("the first row does not fit into the page")

// fit adds rows as far as there is room, and returns how many of them were looked at.
func (s *Server) fit(ctx context.Context, q *question, partition int32, rows []query.Row, has *room, out *onePage) (int, error) {
	for i := range rows {
		if q.filter != nil && i%16 == 15 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if q.hasAt && rows[i].End <= q.at {
			continue
		}
		row, err := q.row(&rows[i], partition)
		if err != nil {
			return 0, err
		}
		if row == nil {
			continue
		}
		n := proto.Size(row)
		if n > s.cfg.Limits.Bytes {
			return 0, query.Errorf(query.TooLarge, "a row of %d bytes exceeds the limit of %d for an answer", n, s.cfg.Limits.Bytes)
		}
		if n > has.bytes {
			return i, nil
		}
		has.bytes -= n
		has.rows--
		out.rows = append(out.rows, row)
	}
	return len(rows), nil
}

package serve

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// gather fills a page from the partitions of a question, in their order. It begins with one partition and, while there is
// room, asks twice as many at a time, so that what is read and then does not fit stays bounded. What a partition has
// answered is taken whole or not at all.
func (s *Server) gather(ctx context.Context, c *call, q *question, req *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	rows, err := s.limit(c, req.Limit)
	if err != nil {
		return nil, err
	}
	list, one, t, err := s.resume(q, req)
	if err != nil {
		return nil, err
	}
	g := &gathered{out: &apiv1.RowsResponse{}, token: t, has: room{rows, s.cfg.Limits.Bytes}}
	asked := len(list)
	for width := 1; len(list) > 0 && !g.full; width = min(2*width, parallel) {
		some := list[:min(width, len(list))]
		list = list[len(some):]
		has := g.has
		answers := scatter(ctx, some, func(ctx context.Context, p int32) (*onePage, error) {
			ctx, cancel := s.share(ctx, req.AllowPartial && !one)
			defer cancel()
			from := &pageToken{question: q.hash, read: t.read, partition: p}
			if p == t.partition {
				from = t
			}
			mine := *q
			if len(some) > 1 { // a filter is one goroutine's
				var err error
				if mine.filter, err = parseFilter(req.Filter); err != nil {
					return nil, err
				}
			}
			return s.page(ctx, c, &mine, req, from, has)
		})
		if err := g.add(c, some, list, answers); err != nil {
			return nil, err
		}
		if g.gaps.first != nil && !req.AllowPartial {
			break
		}
	}
	g.out.Missing = g.gaps.partitions
	return g.out, g.gaps.err(q.st, req.AllowPartial && !one, asked)
}

// gathered is a page while it fills.
type gathered struct {
	out   *apiv1.RowsResponse
	token *pageToken
	has   room
	gaps  gaps
	full  bool
}

// stop ends the page: the next one begins at a partition.
func (g *gathered) stop(p int32, next []byte) {
	g.full = true
	t := &pageToken{question: g.token.question, read: commits{}, partition: p, begun: next != nil, after: next}
	for q, seq := range g.token.read {
		t.read[q] = seq
	}
	for _, m := range g.out.Metas {
		t.read[m.GetPartition()] = max(t.read[m.GetPartition()], m.GetSeq())
	}
	g.out.NextPageToken = t.String()
}

// add takes the answers of some partitions; rest are those not asked yet.
func (g *gathered) add(c *call, some, rest []int32, answers []result[*onePage]) error {
	for i, p := range some {
		a := answers[i]
		switch {
		case errors.Is(a.err, errFirst), c.redirect && is(a.err, query.NotOwner) && len(g.out.Metas) > 0:
			g.stop(p, nil)
			return nil
		case a.err != nil:
			if err := g.gaps.add(p, a.err); err != nil {
				return err
			}
			continue
		}
		size := 0
		for _, r := range a.out.rows {
			size += proto.Size(r)
		}
		if len(a.out.rows) > g.has.rows || size > g.has.bytes {
			g.stop(p, nil)
			return nil
		}
		g.out.Rows = append(g.out.Rows, a.out.rows...)
		g.out.Metas = append(g.out.Metas, a.out.meta)
		g.has.rows -= len(a.out.rows)
		g.has.bytes -= size
		if a.out.next != nil {
			g.stop(p, a.out.next)
			return nil
		}
		if behind := slices.Concat(some[i+1:], rest); g.has.rows == 0 && len(behind) > 0 {
			g.stop(behind[0], nil)
			return nil
		}
	}
	return nil
}

package serve

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// parallel is how many partitions are asked at a time for one question.
const parallel = 8

// MultiGet implements the API.
func (v *service) MultiGet(ctx context.Context, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	return answer(v.s, ctx, "MultiGet", req, func(ctx context.Context, c *call) (*apiv1.MultiGetResponse, error) {
		return v.s.multiGet(ctx, c, req)
	})
}

// keys returns the encoded keys of a request.
func (s *Server) keys(st *query.Store, req *apiv1.MultiGetRequest) (keys [][]byte, err error) {
	n := len(req.Keys) + len(req.JsonKeys) + len(req.RawKeys)
	if n > max(len(req.Keys), len(req.JsonKeys), len(req.RawKeys)) {
		return nil, query.Errorf(query.InvalidRequest, "of keys, json_keys and raw_keys only one can be given")
	}
	if n > s.cfg.Limits.Rows {
		return nil, query.Errorf(query.InvalidRequest, "%d keys are more than the limit of %d", n, s.cfg.Limits.Rows)
	}
	keys = make([][]byte, n)
	for i := range keys {
		switch {
		case i < len(req.Keys):
			keys[i], err = s.textKey(st, req.Keys[i])
		case i < len(req.JsonKeys):
			keys[i], err = s.datumKey(st, req.JsonKeys[i])
		default:
			keys[i], err = s.rawKey(req.RawKeys[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func (s *Server) multiGet(ctx context.Context, c *call, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	st, err := s.counted(ctx, req.Store)
	if err != nil {
		return nil, err
	}
	at, has, err := asOf(st, req.AsOf)
	if err != nil {
		return nil, err
	}
	keys, err := s.keys(st, req)
	if err != nil {
		return nil, err
	}
	places := map[int32][]int{} // of the keys of each partition
	out := &apiv1.MultiGetResponse{Found: make([]*apiv1.Found, len(keys))}
	for i, key := range keys {
		t, err := partition(st, key, req.Partition)
		if err != nil {
			return nil, err
		}
		places[t.Partition] = append(places[t.Partition], i)
		out.Found[i] = &apiv1.Found{Partition: proto.Int32(t.Partition)}
	}
	h := &shape{st: st, raw: c.raw, fields: c.fields}
	list := sortedKeys(places)
	answers := scatter(ctx, list, func(ctx context.Context, p int32) (*apiv1.MultiGetResponse, error) {
		ctx, cancel := s.share(ctx, req.AllowPartial)
		defer cancel()
		var some [][]byte
		for _, i := range places[p] {
			some = append(some, keys[i])
		}
		return route(ctx, s, c, part[*apiv1.MultiGetResponse]{
			task: query.Task{Sub: st.Sub, Partition: p}, want: c.want,
			local: func(ctx context.Context, v *query.View) (*apiv1.MultiGetResponse, error) {
				return s.findAll(ctx, v, h, some, at, has)
			},
			remote: func(ctx context.Context, timeout string, client apiv1.QueriesClient) (*apiv1.MultiGetResponse, error) {
				r := forwarded(req)
				r.Keys, r.JsonKeys, r.RawKeys = nil, nil, some
				r.Timeout, r.Partition, r.AllowPartial = timeout, proto.Int32(p), false
				return client.MultiGet(ctx, r)
			},
		})
	})
	size := 0
	var missing gaps
	for i, p := range list {
		a := answers[i]
		if a.err != nil {
			if err := missing.add(p, a.err); err != nil {
				return nil, err
			}
			for _, k := range places[p] {
				out.Found[k].Missing = true
			}
			continue
		}
		if len(a.out.GetFound()) != len(places[p]) {
			return nil, query.Errorf(query.Failed, "an instance has answered %d keys instead of %d", len(a.out.GetFound()), len(places[p]))
		}
		out.Metas = append(out.Metas, a.out.Metas...)
		for j, k := range places[p] {
			out.Found[k].Row = a.out.Found[j].Row
			size += proto.Size(a.out.Found[j].Row)
		}
	}
	if size > s.cfg.Limits.Bytes {
		return nil, query.Errorf(query.TooLarge, "rows of %d bytes exceed the limit of %d for an answer: ask for fewer keys", size, s.cfg.Limits.Bytes)
	}
	out.Missing = missing.partitions
	return out, missing.err(st, req.AllowPartial, len(list))
}

// findAll reads the rows of keys of one task.
func (s *Server) findAll(ctx context.Context, v *query.View, h *shape, keys [][]byte, at int64, has bool) (*apiv1.MultiGetResponse, error) {
	out := &apiv1.MultiGetResponse{Metas: []*apiv1.Meta{s.metaOf(v.Meta)}}
	size := 0
	for i, key := range keys {
		if i%64 == 63 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row, err := s.find(v, h, key, at, has)
		if err != nil {
			return nil, err
		}
		if size += proto.Size(row); size > s.cfg.Limits.Bytes {
			return nil, query.Errorf(query.TooLarge, "the rows exceed the limit of %d bytes for an answer: ask for fewer keys", s.cfg.Limits.Bytes)
		}
		out.Found = append(out.Found, &apiv1.Found{Row: row, Partition: proto.Int32(v.Task.Partition)})
	}
	return out, nil
}

func sortedKeys[V any](m map[int32]V) []int32 {
	list := make([]int32, 0, len(m))
	for p := range m {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// result is what a partition has answered.
type result[T any] struct {
	out T
	err error
}

// scatter asks partitions, some at a time, and returns their answers in the same order.
func scatter[T any](ctx context.Context, list []int32, ask func(context.Context, int32) (T, error)) []result[T] {
	out := make([]result[T], len(list))
	if len(list) == 1 {
		out[0].out, out[0].err = ask(ctx, list[0])
		return out
	}
	var all sync.WaitGroup
	free := make(chan struct{}, parallel)
	for i, p := range list {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			defer failPanics(&out[i].err)
			out[i].out, out[i].err = ask(ctx, p)
		})
	}
	all.Wait()
	return out
}

package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// MultiGet returns the rows of many keys. Encoded keys are asked of their owners, those of each at a time. The rows of one
// partition are as of one commit.
func (c *Client) MultiGet(ctx context.Context, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	groups := c.group(ctx, req)
	if len(groups) == 1 {
		return c.multiGet(ctx, groups[0].t, req)
	}
	answers := make([]*apiv1.MultiGetResponse, len(groups))
	errs := make([]error, len(groups))
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, g := range groups {
		slots <- struct{}{}
		all.Go(func() {
			part := clone(req)
			part.RawKeys = nil
			for _, at := range g.keys {
				part.RawKeys = append(part.RawKeys, req.RawKeys[at])
			}
			answers[i], errs[i] = c.multiGet(ctx, g.t, part)
			<-slots
		})
	}
	all.Wait()
	return gather(req, groups, answers, errs)
}

// parallel is how many owners are asked at a time.
const parallel = 8

// group is the keys of one owner, or of those whose owner is not known.
type group struct {
	t    target
	keys []int // indexes in the request
}

// group divides the keys of a question by owner. A partition is never divided.
func (c *Client) group(ctx context.Context, req *apiv1.MultiGetRequest) []*group {
	whole := []*group{{t: target{store: req.Store, partition: req.Partition}}}
	if len(req.RawKeys) == 0 || req.Partition != nil || c.cfg.ViaEndpoints {
		return whole
	}
	a, f := c.atlas(ctx)
	if f != nil {
		return whole
	}
	by := map[string]*group{}
	for i, k := range req.RawKeys {
		endpoint, t := "", target{store: req.Store}
		if task, ok := a.task(req.Store, k, nil); ok {
			if endpoint = a.owner(task); endpoint != "" {
				t.partition = proto.Int32(task.Partition)
			}
		}
		if by[endpoint] == nil {
			by[endpoint] = &group{t: t}
		}
		by[endpoint].keys = append(by[endpoint].keys, i)
	}
	if len(by) == 1 {
		for _, g := range by {
			whole[0].t = g.t
		}
		return whole
	}
	var out []*group
	for _, e := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[e])
	}
	return out
}

// multiGet asks one instance. Only the first attempt expects all keys to be there.
func (c *Client) multiGet(ctx context.Context, t target, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	req, first := clone(req), true
	out, err := ask(ctx, c, t, func(ctx context.Context, q apiv1.QueriesClient, direct bool) (*apiv1.MultiGetResponse, error) {
		req.Redirect, first = direct && first, false
		return q.MultiGet(ctx, req)
	})
	if err == nil {
		if want := len(req.Keys) + len(req.JsonKeys) + len(req.RawKeys); len(out.Found) != want {
			return nil, query.Errorf(query.Failed, "an instance has answered about %d keys of %d", len(out.Found), want)
		}
	}
	return out, err
}

// gather makes one answer of those of the groups.
func gather(req *apiv1.MultiGetRequest, groups []*group, answers []*apiv1.MultiGetResponse, errs []error) (*apiv1.MultiGetResponse, error) {
	out := &apiv1.MultiGetResponse{Found: make([]*apiv1.Found, len(req.RawKeys))}
	var missing []int32
	var partial *query.Error
	for i, g := range groups {
		if err := errs[i]; err != nil {
			var e *query.Error
			if !errors.As(err, &e) || e.Reason != query.Partial {
				return nil, err
			}
			partial = e
			missing = append(missing, e.Missing...)
			continue
		}
		for at, key := range g.keys {
			out.Found[key] = answers[i].Found[at]
		}
		out.Metas = append(out.Metas, answers[i].Metas...)
		missing = append(missing, answers[i].Missing...)
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if partial != nil {
		e := *partial
		e.Missing, e.Message = missing, fmt.Sprintf("%d partitions have no answer", len(missing))
		return nil, &e
	}
	slices.SortStableFunc(out.Metas, func(a, b *apiv1.Meta) int { return int(a.GetPartition()) - int(b.GetPartition()) })
	out.Missing = missing
	return out, nil
}

// Found is what was found for one of many keys.
type Found[K, V any] struct {
	Row[K, V]
	// Found says whether the store has the key; only Key, Partition and Meta are set if not.
	Found bool
	// Missing says that the partition has no answer: whether the store has the key is not known.
	Missing bool
}

// MultiGet returns what was found for each key, in the order of the keys. Those of one partition are as of one commit. With
// AllowPartial the result may come with the error query.Partial.
func (r *Reader[K, V]) MultiGet(ctx context.Context, keys []K, opts ...Option) ([]Found[K, V], error) {
	if len(keys) == 0 {
		return nil, nil
	}
	o := optionsOf(opts)
	ctx, cancel := r.c.bounded(ctx)
	defer cancel()
	req := &apiv1.MultiGetRequest{
		Store: r.name, Partition: o.partition, AsOf: o.asOf, AllowPartial: o.partial, Raw: true,
		Consistency: o.consistency, MaxLag: o.maxLag, MinWatermark: o.minWatermark,
	}
	for _, k := range keys {
		b, err := r.encode(k)
		if err != nil {
			return nil, err
		}
		req.RawKeys = append(req.RawKeys, b)
	}
	st, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	req.Position = r.position(st, o, nil)
	out, err := r.c.MultiGet(ctx, req)
	if err != nil {
		return nil, err
	}
	metas := map[int32]*Meta{}
	for _, m := range out.Metas {
		meta, err := r.saw(m)
		if err != nil {
			return nil, err
		}
		metas[m.GetPartition()] = &meta
	}
	found := make([]Found[K, V], len(keys))
	for i, w := range out.Found {
		p := w.GetPartition()
		found[i] = Found[K, V]{Row: Row[K, V]{Key: keys[i], Partition: p, Meta: metas[p]}, Missing: w.GetMissing()}
		if w.GetRow() == nil {
			continue
		}
		if found[i].Row, err = r.row(w.Row, metas[p]); err != nil {
			return nil, err
		}
		found[i].Found = true
	}
	if len(out.Missing) > 0 {
		return found, partial(r.name, out.Missing)
	}
	return found, nil
}

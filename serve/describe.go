package serve

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// The messages that describe the app, and where an answer comes from.

func hostOf(h query.Host) *apiv1.Host {
	return &apiv1.Host{Instance: h.Instance, Endpoint: h.Endpoint, Rack: h.Rack}
}

func storeOf(s *query.Store) *apiv1.Store {
	return &apiv1.Store{
		Id: s.ID, Kind: string(s.Kind), Sub: s.Sub, Partitions: proto.Int32(s.Partitions), Topics: s.Topics,
		Windows: s.Windows, Slices: s.Slices, KeySchema: s.Key.Schema(), ValueSchema: s.Value.Schema(),
	}
}

func mapOf(m *query.Map) *apiv1.GetHostsResponse {
	out := &apiv1.GetHostsResponse{Generation: proto.Int32(m.Generation), Owners: map[string]*apiv1.Owners{}}
	if m.Self >= 0 {
		out.Self = proto.Int32(int32(m.Self))
	}
	for _, h := range m.Hosts {
		out.Hosts = append(out.Hosts, hostOf(h))
	}
	for sub, owners := range m.Owners {
		o := &apiv1.Owners{}
		for _, i := range owners {
			o.Hosts = append(o.Hosts, int32(i))
		}
		out.Owners[sub] = o
	}
	return out
}

func (s *Server) metaOf(m query.Meta) *apiv1.Meta {
	out := &apiv1.Meta{
		Task: m.Task.String(), Partition: proto.Int32(m.Task.Partition), Seq: proto.Uint64(m.Seq),
		Position: m.Position.String(), Stale: m.Stale, Lag: m.Lag,
	}
	if m.Watermark != query.NoWatermark {
		out.Watermark = proto.Int64(m.Watermark)
	}
	if m.Time != 0 {
		out.Time = proto.Int64(m.Time)
		out.Age = proto.Int64(max(0, s.cfg.Clock.Now().UnixMilli()-m.Time))
	}
	return out
}

// ListStores implements the API.
func (v *service) ListStores(ctx context.Context, req *apiv1.ListStoresRequest) (*apiv1.ListStoresResponse, error) {
	return answer(v.s, ctx, "ListStores", req, func(context.Context, *call) (*apiv1.ListStoresResponse, error) {
		out := &apiv1.ListStoresResponse{}
		for _, st := range v.s.source.Stores() {
			out.Stores = append(out.Stores, storeOf(st))
		}
		return out, nil
	})
}

// GetStore implements the API.
func (v *service) GetStore(ctx context.Context, req *apiv1.GetStoreRequest) (*apiv1.Store, error) {
	return answer(v.s, ctx, "GetStore", req, func(context.Context, *call) (*apiv1.Store, error) {
		st, err := v.s.store(req.Store)
		if err != nil {
			return nil, err
		}
		return storeOf(st), nil
	})
}

// GetHosts implements the API.
func (v *service) GetHosts(ctx context.Context, req *apiv1.GetHostsRequest) (*apiv1.GetHostsResponse, error) {
	return answer(v.s, ctx, "GetHosts", req, func(context.Context, *call) (*apiv1.GetHostsResponse, error) {
		return mapOf(v.s.source.Hosts()), nil
	})
}

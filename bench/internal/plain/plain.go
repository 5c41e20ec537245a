// Package plain is the least a gRPC service can do with the questions that bench queries asks: it answers from memory, with messages of
// the same size, and knows neither tasks nor limits. Run inside a measured instance, beside the real service, it shows what of an
// answer's time is that of gRPC, of the process and of the machine. It must never be used by anything but the benchmark. Its goroutines are those
// of the gRPC server, which ends with Serve.
package plain

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Forward is the store of a question that is put to the peer.
const Forward = "forward"

// service answers Get and Scan.
type service struct {
	apiv1.UnimplementedQueriesServer
	peer apiv1.QueriesClient
	rows *apiv1.RowsResponse
}

// Serve answers at addr until ctx ends. Questions for the store Forward go to the peer.
func Serve(ctx context.Context, addr, peer string) error {
	conn, err := grpc.NewClient("passthrough:///"+peer, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig())
	if err != nil {
		return fmt.Errorf("plain: %w", err)
	}
	defer conn.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("plain: %w", err)
	}
	s := &service{peer: apiv1.NewQueriesClient(conn), rows: &apiv1.RowsResponse{Metas: []*apiv1.Meta{meta()}}}
	for range 100 {
		s.rows.Rows = append(s.rows.Rows, row(make([]byte, 16)))
	}
	server := grpc.NewServer()
	apiv1.RegisterQueriesServer(server, s)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(l)
}

// Get answers with a row of the key, here or there.
func (s *service) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	if r.Store == Forward {
		r = proto.Clone(r).(*apiv1.GetRequest)
		r.Store = ""
		return s.peer.Get(ctx, r)
	}
	return &apiv1.GetResponse{Row: row(r.RawKey), Meta: meta()}, nil
}

// Scan answers with a hundred rows.
func (s *service) Scan(context.Context, *apiv1.RowsRequest) (*apiv1.RowsResponse, error) {
	return s.rows, nil
}

// row is as large as one of W2.
func row(key []byte) *apiv1.Row {
	return &apiv1.Row{
		Partition: proto.Int32(0), Time: proto.Int64(1 << 40), Key: &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: key}},
		Value: &apiv1.Datum{Form: &apiv1.Datum_Raw{Raw: make([]byte, 8)}},
	}
}

func meta() *apiv1.Meta {
	return &apiv1.Meta{
		Task: "counts/0", Partition: proto.Int32(0), Seq: proto.Uint64(1 << 20), Time: proto.Int64(1 << 40), Age: proto.Int64(100),
		Position: "counts/0:123456:1234567",
	}
}

package serve

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Forwarded watches that fill a connection do not keep questions waiting, nor each other: there is another connection.
func TestWatchesDoNotFillTheConnection(t *testing.T) {
	c := newCluster(t, 2, Config{Limits: Limits{Streams: 2}})
	c.commit(0, kv("counts", "a", "1"))
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for range 5 {
		// Clients of their own: one connection carries two calls.
		conn, err := grpc.NewClient("passthrough:///"+c.instances[1].endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := apiv1.NewQueriesClient(conn).Watch(ctx, &apiv1.WatchRequest{Store: "counts", Partition: proto.Int32(0)})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := at0(c.instances[1], ctx, "a"); err != nil || out.Row.Value.GetJson() != "1" {
		t.Errorf("%v %v", out, err)
	}
}

// Connections to instances that have left the group are closed when nobody uses them.
func TestPoolForgets(t *testing.T) {
	p := newPool(Peer{}, Limits{}.withDefaults())
	defer p.close()
	_, done, err := p.get("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	p.keep(&query.Map{})
	if len(p.conns) != 1 {
		t.Error("a connection in use was closed")
	}
	done()
	done()
	p.keep(&query.Map{Hosts: []query.Host{{Endpoint: "127.0.0.1:1"}}})
	if len(p.conns) != 1 {
		t.Error("a connection to an instance of the group was closed")
	}
	p.keep(&query.Map{})
	if len(p.conns) != 0 {
		t.Error("a connection nobody needs is kept")
	}
}

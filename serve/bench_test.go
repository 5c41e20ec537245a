package serve

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// gets asks one question after the other and reports how long they take; the figures of split.go come from here.
func gets(b *testing.B, client apiv1.QueriesClient) {
	req := &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0)}
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		from := time.Now()
		if _, err := client.Get(context.Background(), req); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(from))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkGet(b *testing.B) {
	c := newCluster(b, 2, Config{})
	c.commit(0, kv("counts", "a", `{"n":1}`))
	b.Run("local", func(b *testing.B) { gets(b, c.instances[0].client) })
	b.Run("forwarded", func(b *testing.B) { gets(b, c.instances[1].client) })
	b.Run("net-http", func(b *testing.B) {
		// The alternative: gRPC on the transport of net/http.
		rpc := grpc.NewServer()
		c.instances[0].server.Register(rpc)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		web := &http.Server{Handler: rpc, Protocols: protocols}
		done := make(chan error)
		go func() { done <- web.Serve(l) }()
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		gets(b, apiv1.NewQueriesClient(conn))
		_, _ = conn.Close(), web.Close()
		<-done
	})
	b.Run("rest", func(b *testing.B) {
		path := "http://" + c.instances[0].endpoint + "/v1/stores/counts/keys/a?partition=0"
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client := http.Client{Transport: transport}
		for b.Loop() {
			res, err := client.Get(path)
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, 1024)
			for err == nil {
				_, err = res.Body.Read(buf)
			}
			_ = res.Body.Close()
		}
	})
}

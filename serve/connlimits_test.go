package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// One connection has as many calls at a time as it may, and the next one waits until one of them ends.
func TestLimitStreams(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Streams: 2}})
	in := c.instances[0]
	var ends []context.CancelFunc
	for i := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends = append(ends, cancel)
		s, err := in.client.Watch(ctx, &apiv1.WatchRequest{Store: "counts"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatalf("watch %d of 2: %v", i+1, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := in.client.ListStores(ctx, &apiv1.ListStoresRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the third call of two: %v", err)
	}
	ends[0]()
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := in.client.ListStores(ctx, &apiv1.ListStoresRequest{}); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// request sends the header of a request with a body, and returns the connection.
func request(t *testing.T, endpoint string, length int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /v1/stores/counts:multiGet HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A body that does not come in time ends the connection; one that comes in parts, in time, is answered.
func TestLimitBody(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Header: 100 * time.Millisecond, Body: 400 * time.Millisecond}})
	body := `{"keys":["a"]}`
	slow := request(t, c.instances[0].endpoint, len(body))
	if _, err := slow.Write([]byte(body[:3])); err != nil {
		t.Fatal(err)
	}
	_ = slow.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadAll(slow); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a body that does not come: %v", err)
	}
	quick := request(t, c.instances[0].endpoint, len(body))
	for _, part := range []string{body[:3], body[3:]} {
		if _, err := quick.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(quick), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a body in two parts: %v, %v", resp, err)
	}
}

// A connection that asks nothing more is closed after the time it may be idle.
func TestLimitIdle(t *testing.T) {
	c := newCluster(t, 1, Config{Limits: Limits{Idle: 200 * time.Millisecond}})
	conn, err := net.Dial("tcp", c.instances[0].endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 2 { // it is not closed between two questions that follow each other
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection: %v", err)
	}
}

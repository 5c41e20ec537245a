package serve

import (
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// A client that pings more often than it may is told so and cut off; one that keeps to the limit is answered. gRPC forgives two
// pings that come too early.
func TestLimitKeepalive(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit time.Duration
		quits bool
	}{
		{"too often", time.Hour, true},
		{"as often as it may", time.Nanosecond, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, 1, Config{Limits: Limits{Keepalive: test.limit}})
			f := pinging(t, c.instances[0].endpoint)
			for i := range 50 { // what the watch sends makes gRPC count anew
				if err := f.WritePing(false, [8]byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
				quit := answered(t, f, [8]byte{byte(i)})
				if quit {
					if !test.quits || i < 3 {
						t.Fatalf("cut off at ping %d", i+1)
					}
					return
				}
			}
			if test.quits {
				t.Fatal("all pings were answered")
			}
		})
	}
}

// pinging opens a connection whose frames the test writes itself, with a watch on it: without a call pings are not welcome at all.
func pinging(t *testing.T, endpoint string) *http2.Framer {
	t.Helper()
	conn, err := net.Dial("tcp", endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	var block headerBlock
	block.add(":method", "POST", ":scheme", "http", ":path", "/tidemark.v1.Queries/Watch", ":authority", endpoint, "content-type", "application/grpc", "te", "trailers")
	body, err := proto.Marshal(&apiv1.WatchRequest{Store: "counts"})
	if err != nil {
		t.Fatal(err)
	}
	message := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	err = errors.Join(
		f.WriteSettings(),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true}),
		f.WriteData(1, true, append(message, body...)),
	)
	if err != nil {
		t.Fatal(err)
	}
	for { // until the watch has said something
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.DataFrame); ok {
			return f
		}
	}
}

// answered reads until the answer to a ping, or, with true, until the server says that there were too many.
func answered(t *testing.T, f *http2.Framer, want [8]byte) (quit bool) {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.PingFrame:
			if frame.IsAck() && frame.Data == want {
				return false
			}
		case *http2.GoAwayFrame:
			if frame.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Fatalf("the connection ends with %v", frame.ErrCode)
			}
			return true
		}
	}
}

// headerBlock is a header as it goes over the wire.
type headerBlock []byte

func (b *headerBlock) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *headerBlock) add(fields ...string) {
	e := hpack.NewEncoder(b)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // it goes into memory
	}
}

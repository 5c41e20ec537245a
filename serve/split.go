package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// split shares one port between gRPC and HTTP/1.1. Without TLS gRPC is known by its first bytes, those of HTTP/2; with TLS the
// client says what it speaks, and who speaks HTTP/1.1 gets it. Both servers get connections of their own kind, so that gRPC
// runs on its own transport. grpc.Server.ServeHTTP, which runs on that of net/http, takes more than three times as long for a point
// get: go test -run none -bench Get ./serve.
type split struct {
	from      net.Listener
	tls       *tls.Config
	patience  time.Duration
	deadline  func(time.Duration) time.Time
	rpc, http *feed
	sniffers  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting map[net.Conn]bool
}

func newSplit(from net.Listener, t *tls.Config, patience time.Duration, deadline func(time.Duration) time.Time) *split {
	s := &split{from: from, patience: patience, deadline: deadline, waiting: map[net.Conn]bool{}}
	s.rpc, s.http = newFeed(from.Addr()), newFeed(from.Addr())
	if t != nil {
		s.tls = t.Clone()
		s.tls.NextProtos = []string{"h2", "http/1.1"}
		s.tls.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			own := t
			if t.GetConfigForClient != nil {
				c, err := t.GetConfigForClient(hello)
				if err != nil {
					return nil, err
				}
				if c != nil {
					own = c
				}
			}
			own = own.Clone()
			own.GetConfigForClient = nil
			own.NextProtos = []string{"h2"}
			if len(hello.SupportedProtos) == 0 || slices.Contains(hello.SupportedProtos, "http/1.1") {
				own.NextProtos = []string{"http/1.1"}
			}
			return own, nil
		}
	}
	return s
}

// run takes connections until the listener is closed.
func (s *split) run() error {
	defer s.sniffers.Wait()
	defer s.hangUp()
	for {
		conn, err := s.from.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = conn.Close()
			continue
		}
		s.waiting[conn] = true
		s.mu.Unlock()
		s.sniffers.Go(func() {
			to, ready, err := s.sniff(conn)
			s.mu.Lock()
			delete(s.waiting, conn)
			s.mu.Unlock()
			if err != nil || !to.put(ready) {
				_ = conn.Close()
			}
		})
	}
}

// hangUp closes connections that have not said yet what they are.
func (s *split) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.waiting {
		_ = conn.Close()
	}
}

// sniff finds out which server a connection is for.
func (s *split) sniff(conn net.Conn) (*feed, net.Conn, error) {
	if err := conn.SetDeadline(s.deadline(s.patience)); err != nil {
		return nil, nil, err
	}
	to := s.http
	if s.tls != nil {
		secure := tls.Server(conn, s.tls)
		if err := secure.HandshakeContext(context.Background()); err != nil { // its deadline is the connection's
			return nil, nil, err
		}
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			to = s.rpc
		}
		return to, secure, conn.SetDeadline(time.Time{})
	}
	first := make([]byte, 3)
	for n := 0; n < len(first); {
		k, err := conn.Read(first[n:])
		if err != nil {
			return nil, nil, err
		}
		n += k
	}
	if string(first) == "PRI" {
		to = s.rpc
	}
	return to, &sniffed{Conn: conn, first: first}, conn.SetDeadline(time.Time{})
}

// sniffed is a connection whose first bytes were read already.
type sniffed struct {
	net.Conn
	first []byte
}

func (c *sniffed) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// feed is a listener that gets its connections from a split.
type feed struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func newFeed(a net.Addr) *feed {
	f := &feed{addr: a, conns: make(chan net.Conn), done: make(chan struct{})}
	f.close = sync.OnceFunc(func() { close(f.done) })
	return f
}

func (f *feed) put(c net.Conn) bool {
	select {
	case f.conns <- c:
		return true
	case <-f.done:
		return false
	}
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error   { f.close(); return nil }
func (f *feed) Addr() net.Addr { return f.addr }

// shaken are the credentials of connections whose handshake, if they have one, is over.
type shaken struct{}

func (shaken) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if t, ok := c.(*tls.Conn); ok {
		return c, credentials.TLSInfo{
			State:          t.ConnectionState(),
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}, nil
	}
	return c, nil, nil
}

func (shaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("serve: not for clients")
}

func (shaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}
func (k shaken) Clone() credentials.TransportCredentials { return k }
func (shaken) OverrideServerName(string) error           { return nil }

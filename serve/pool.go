package serve

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// pool holds the connections to other instances. A connection takes so many calls at a time as the other side allows, and
// watches take a call each for as long as they last: there is another connection when one is full.
type pool struct {
	options []grpc.DialOption
	perConn int

	mu     sync.Mutex
	closed bool
	conns  map[string][]*peerConn
}

type peerConn struct {
	conn   *grpc.ClientConn
	client apiv1.QueriesClient
	calls  int
}

func newPool(p Peer, l Limits) *pool {
	secure := insecure.NewCredentials()
	if p.TLS != nil {
		secure = credentials.NewTLS(peerTLS(p.TLS))
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(l.Bytes+8<<20), grpc.MaxCallSendMsgSize(l.Request+1<<20)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: max(20*time.Second, l.Keepalive), Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	}
	if p.Credentials != nil {
		options = append(options, grpc.WithPerRPCCredentials(p.Credentials))
	}
	if p.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return p.Dial(ctx, addr) }))
	}
	return &pool{options: options, perConn: max(1, l.Streams*9/10), conns: map[string][]*peerConn{}}
}

// get returns a client for an instance; done is called when the call is over.
func (p *pool) get(endpoint string) (c apiv1.QueriesClient, done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosing
	}
	var best *peerConn
	for _, k := range p.conns[endpoint] {
		if k.calls < p.perConn && (best == nil || k.calls < best.calls) {
			best = k
		}
	}
	if best == nil {
		conn, err := grpc.NewClient("passthrough:///"+endpoint, p.options...)
		if err != nil {
			return nil, nil, &query.Error{Reason: query.NoOwner, Message: "an instance cannot be reached at " + endpoint, Err: err}
		}
		best = &peerConn{conn: conn, client: apiv1.NewQueriesClient(conn)}
		p.conns[endpoint] = append(p.conns[endpoint], best)
	}
	best.calls++
	return best.client, sync.OnceFunc(func() {
		p.mu.Lock()
		best.calls--
		p.mu.Unlock()
	}), nil
}

// keep closes connections to instances that are no longer in the map.
func (p *pool) keep(m *query.Map) {
	there := map[string]bool{}
	for _, h := range m.Hosts {
		there[h.Endpoint] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for endpoint, conns := range p.conns {
		busy := false
		for _, k := range conns {
			busy = busy || k.calls > 0
		}
		if there[endpoint] || busy {
			continue
		}
		for _, k := range conns {
			_ = k.conn.Close()
		}
		delete(p.conns, endpoint)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, conns := range p.conns {
		for _, k := range conns {
			_ = k.conn.Close()
		}
	}
	p.conns = nil
}

// peerTLS says what the peer serves by protocol, see split.
func peerTLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"h2"}
	return c
}

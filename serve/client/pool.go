package client

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

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// pool holds one connection per endpoint, and which endpoints could not be reached lately.
type pool struct {
	options []grpc.DialOption

	mu     sync.Mutex
	closed bool
	conns  map[string]*conn
	down   map[string]time.Time // until when an endpoint is not the first choice
}

type conn struct {
	*grpc.ClientConn
	calls int
}

// downFor is for how long an endpoint that could not be reached is not the first choice.
const downFor = 2 * time.Second

func newPool(c Config) *pool {
	secure := insecure.NewCredentials()
	if c.TLS != nil {
		secure = credentials.NewTLS(withH2(c.TLS))
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessage)),
		// Instances take a ping every ten seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("tidemark"),
	}
	if c.Credentials != nil {
		options = append(options, grpc.WithPerRPCCredentials(c.Credentials))
	}
	if c.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }))
	}
	return &pool{options: options, conns: map[string]*conn{}, down: map[string]time.Time{}}
}

// withH2 offers nothing but HTTP/2, because endpoints serve HTTP/1.1 as well.
func withH2(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"h2"}
	return c
}

// get returns a client for an endpoint. done is called once, when the call is over.
func (p *pool) get(endpoint string) (q apiv1.QueriesClient, done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosed
	}
	c := p.conns[endpoint]
	if c == nil {
		g, err := grpc.NewClient("passthrough:///"+endpoint, p.options...)
		if err != nil {
			return nil, nil, err
		}
		c = &conn{ClientConn: g}
		p.conns[endpoint] = c
	}
	c.calls++
	return apiv1.NewQueriesClient(c), func() {
		p.mu.Lock()
		c.calls--
		p.mu.Unlock()
	}, nil
}

// mark notes that an endpoint could not be reached, or that it could.
func (p *pool) mark(endpoint string, now time.Time, reached bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reached {
		delete(p.down, endpoint)
	} else {
		p.down[endpoint] = now.Add(downFor)
	}
}

// isDown says that an endpoint could not be reached lately.
func (p *pool) isDown(endpoint string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.down[endpoint])
}

// keep closes what is idle and leads to none of the endpoints.
func (p *pool) keep(endpoints map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e, c := range p.conns {
		if !endpoints[e] && c.calls == 0 {
			_ = c.Close()
			delete(p.conns, e)
			delete(p.down, e)
		}
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

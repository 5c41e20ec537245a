package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// Config says how a Client reaches an app.
type Config struct {
	// Endpoints are the addresses, host:port, of some or all instances, or of what distributes connections over them. At
	// least one is needed. The others are found with the map of the group.
	Endpoints []string
	// TLS is used for all connections. Default: none.
	TLS *tls.Config
	// Credentials are sent with every question. Default: none.
	Credentials credentials.PerRPCCredentials
	// Timeout is the deadline of questions whose context has none, and how long a watch may take to begin. Default: 5 s.
	Timeout time.Duration
	// ViaEndpoints makes the client ask Endpoints only and leave it to them to ask the owner of a key: for instances whose
	// own addresses cannot be reached from here. Default: the owner is asked.
	ViaEndpoints bool
	// MaxMessage is how many bytes an answer may have. Default: 64 MiB.
	MaxMessage int
	// Dial opens connections. Default: TCP.
	Dial func(ctx context.Context, endpoint string) (net.Conn, error)
	// Rand returns a number in [0, 1), for the pauses between attempts and the first endpoint. Default: that of
	// math/rand/v2.
	Rand func() float64
}

var (
	errNoEndpoint = errors.New("client: no endpoint: Config.Endpoints needs at least one host:port")
	errClosed     = errors.New("the client is closed")
)

func (c Config) withDefaults() (Config, error) {
	if len(c.Endpoints) == 0 {
		return c, errNoEndpoint
	}
	for _, e := range c.Endpoints {
		if _, _, err := net.SplitHostPort(e); err != nil {
			return c, &net.AddrError{Err: "client: an endpoint is host:port", Addr: e}
		}
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = 64 << 20
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c, nil
}

package serve

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"

	"github.com/tidemark/tidemark/internal/clock"
)

// Config says how a Server answers. The zero value answers on loopback, without TLS and authentication.
type Config struct {
	// TLS is used by Listen and Serve. Default: none.
	TLS *tls.Config
	// Authenticate says who asks; its error is told as UNAUTHENTICATED. Default: everybody is let in, with the empty name.
	Authenticate func(ctx context.Context, c Caller) (principal string, err error)
	// PlaintextForAnyone lets Listen and Serve take an address that is not on loopback without TLS or without Authenticate:
	// whoever reaches it reads all state. Default: such an address is refused.
	PlaintextForAnyone bool
	// Peer is how other instances are reached.
	Peer Peer
	// Limits bound what a question may cost.
	Limits Limits
	// Rate bounds how often one principal may ask.
	Rate Rate
	// Registerer receives the Prometheus metrics. Default: they are not registered.
	Registerer prometheus.Registerer
	// Gatherer is what Handler shows at /metrics. Default: there is no such page.
	Gatherer prometheus.Gatherer
	// Ready returns why the instance is not ready, nothing if it is. Default: it is ready once it is in the map of the group.
	Ready func() []string
	// Reflection makes Listen and Serve describe the API to gRPC tools. Default: off.
	Reflection bool
	// Pprof makes Handler show /debug/pprof/. Default: off.
	Pprof bool
	// Logger receives transitions, never single questions. Default: nothing is logged.
	Logger *zap.Logger
	// Clock is the source of time. Default: that of the system.
	Clock clock.Clock
	// Rand returns a number in [0, 1), for the pauses between attempts. Default: that of math/rand/v2.
	Rand func() float64
}

// Peer is how an instance reaches the others.
type Peer struct {
	// TLS is used for connections to other instances. Default: none.
	TLS *tls.Config
	// Credentials are sent with every forwarded question. Default: none.
	Credentials credentials.PerRPCCredentials
	// Dial opens connections. Default: TCP.
	Dial func(ctx context.Context, endpoint string) (net.Conn, error)
}

// Rate is a token bucket per principal, or per address for who has no name.
type Rate struct {
	// PerSecond is how many questions a second are refilled. 0: no bound.
	PerSecond float64
	// Burst is how many questions the bucket holds. Default: one second's, at least 1.
	Burst int
}

// Limits bound what a question may cost. Zero fields have their defaults.
type Limits struct {
	// Timeout is the deadline of a question that has none, 5 s by default, and MaxTimeout the latest, 30 s by default.
	Timeout, MaxTimeout time.Duration
	// Rows is how many rows an answer may have, and how many keys a question, 10,000 by default.
	Rows int
	// Bytes is how many bytes of rows, as protobuf has them, an answer may have. Default: 4 MiB less 256 KiB for what is
	// beside the rows, because clients of gRPC take 4 MiB.
	Bytes int
	// Visit is how many rows are looked at for one page of a question with a filter, 100,000 by default.
	Visit int
	// Key is how many bytes an encoded key may have, 1 MiB by default.
	Key int
	// Request is how many bytes a question may have, 1 MiB by default.
	Request int
	// Scans is how many questions for rows are answered at a time, 16 by default. Twice as many parts of such questions are
	// read at a time, whoever has asked.
	Scans int
	// Watchers is how many watches there may be at a time, 20,000 by default, and as many that other instances have
	// forwarded, one per partition.
	Watchers int
	// Streams is how many calls at a time one connection of gRPC may have, 1,000 by default.
	Streams int
	// Header, Body and Idle are how long a client may take for the header and the body of an HTTP request, and between two,
	// 5 s, 10 s and 2 min by default.
	Header, Body, Idle time.Duration
	// Keepalive is how often, at most, a client of gRPC may ping, 10 s by default.
	Keepalive time.Duration
}

func (l Limits) withDefaults() Limits {
	or(&l.Timeout, 5*time.Second)
	or(&l.MaxTimeout, 30*time.Second)
	or(&l.Rows, 10_000)
	or(&l.Bytes, 4<<20-256<<10)
	or(&l.Visit, 100_000)
	or(&l.Key, 1<<20)
	or(&l.Request, 1<<20)
	or(&l.Scans, 16)
	or(&l.Watchers, 20_000)
	or(&l.Streams, 1_000)
	or(&l.Header, 5*time.Second)
	or(&l.Body, 10*time.Second)
	or(&l.Idle, 2*time.Minute)
	or(&l.Keepalive, 10*time.Second)
	l.Timeout = min(l.Timeout, l.MaxTimeout)
	return l
}

func or[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

func (c Config) withDefaults() Config {
	c.Limits = c.Limits.withDefaults()
	if c.Rate.Burst <= 0 {
		c.Rate.Burst = max(1, int(c.Rate.PerSecond))
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

package serve

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
)

// Caller is what is known about who asks.
type Caller struct {
	// Authorization is the header or metadata of that name, as "Bearer ..."; empty if there is none.
	Authorization string
	// TLS describes the connection, with the certificates of the client; nil without TLS.
	TLS *tls.ConnectionState
	// Remote is the address of the connection, nil if it is not known.
	Remote net.Addr
	// Forwarded says that another instance has forwarded the question, as who asks says.
	Forwarded bool
	// Request is the question.
	Request proto.Message
}

// authenticate returns the name under which who asks is counted.
func (s *Server) authenticate(ctx context.Context, req proto.Message) (string, error) {
	if s.cfg.Authenticate == nil && s.cfg.Rate.PerSecond <= 0 {
		return "", nil
	}
	c := Caller{Forwarded: hopped(ctx), Request: req}
	if p, ok := peer.FromContext(ctx); ok {
		c.Remote = p.Addr
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			c.TLS = &t.State
		}
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		if v := md.Get("authorization"); len(v) == 1 {
			c.Authorization = v[0]
		}
	}
	name := ""
	if s.cfg.Authenticate != nil {
		var err error
		if name, err = s.cfg.Authenticate(ctx, c); err != nil {
			return "", &query.Error{Reason: query.Unauthenticated, Message: "who asks is not known", Err: err}
		}
	}
	if name == "" && c.Remote != nil {
		host, _, err := net.SplitHostPort(c.Remote.String())
		if err != nil {
			host = c.Remote.String()
		}
		name = "address " + host
	}
	return name, nil
}

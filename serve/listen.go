package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// ErrUnprotected is returned by Listen and Serve for an address that others can reach, without TLS or authentication.
var ErrUnprotected = errors.New("serve: the address is not on loopback, and TLS or authentication is missing: set both, or PlaintextForAnyone")

// Listen opens an address, host:port, for Serve. The error is ErrUnprotected if it may not be served.
func (s *Server) Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if err := s.protected(l.Addr()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// protected says whether an address may be served.
func (s *Server) protected(a net.Addr) error {
	t, ok := a.(*net.TCPAddr)
	if !ok || t.IP.IsLoopback() || s.cfg.PlaintextForAnyone || s.cfg.TLS != nil && s.cfg.authenticates() {
		return nil
	}
	return fmt.Errorf("%w (%s)", ErrUnprotected, a)
}

// authenticates says whether who asks has to be known.
func (c *Config) authenticates() bool {
	return c.Authenticate != nil || c.TLS != nil && c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// Serve answers gRPC and HTTP/1.1 on a listener until ctx ends, and then closes it and the server. The error is that of the
// listener, or ErrUnprotected.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.protected(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	limits := s.cfg.Limits
	both := newSplit(l, s.cfg.TLS, limits.Header, func(d time.Duration) time.Time { return s.cfg.Clock.Now().Add(d) })
	rpc := s.newGRPC()
	var conns sync.WaitGroup
	web := &http.Server{
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
		Handler: s.rest, ReadHeaderTimeout: limits.Header, ReadTimeout: limits.Header + limits.Body, IdleTimeout: limits.Idle,
		MaxHeaderBytes: limits.Request + 64<<10, // a key may stand on the path
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:       zap.NewStdLog(s.cfg.Logger.Named("http")),
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	serve := func(fn func() error) {
		all.Go(func() {
			if err := fn(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				cancel(err)
			}
		})
	}
	serve(both.run)
	serve(func() error { return rpc.Serve(both.rpc) })
	serve(func() error { return web.Serve(both.http) })
	<-ctx.Done()
	err := l.Close()
	if cause := context.Cause(ctx); cause != context.Cause(caller) { // the caller's end is no error, whatever its cause
		err = cause
	}
	closed := make(chan struct{})
	all.Go(func() {
		s.Close()
		close(closed)
	})
	timer := s.cfg.Clock.NewTimer(2 * grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C(): // a client that reads nothing holds its watch until its connection goes
	}
	rpc.Stop()
	_ = web.Close()
	_, _ = both.rpc.Close(), both.http.Close()
	all.Wait()
	conns.Wait()
	return err
}

// ListenAndServe is Listen and Serve.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := s.Listen(addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// streamWorkers is how many goroutines are kept for the next questions: a new one for each spends an eighth of its time on making its
// stack larger. Questions beyond get goroutines of their own.
const streamWorkers = 64

// newGRPC returns a gRPC server with the limits.
func (s *Server) newGRPC() *grpc.Server {
	limits := s.cfg.Limits
	server := grpc.NewServer(
		grpc.Creds(shaken{}),
		grpc.MaxRecvMsgSize(limits.Request+64<<10), // what exceeds the limit by little gets an error with a reason
		grpc.MaxConcurrentStreams(uint32(limits.Streams)),
		grpc.ConnectionTimeout(limits.Header),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: limits.Keepalive, PermitWithoutStream: false}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 10 * time.Second}),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
	)
	s.Register(server)
	if s.cfg.Reflection {
		reflection.Register(server)
	}
	return server
}

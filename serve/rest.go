package serve

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// newREST returns the REST front: grpc-gateway's handlers, which call the API in the process, and the pages beside it.
func newREST(s *Server) (http.Handler, error) {
	none := func(string) (string, bool) { return "", false }
	gateway := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		runtime.WithErrorHandler(restError),
		runtime.WithRoutingErrorHandler(restRoutingError),
		runtime.WithIncomingHeaderMatcher(none), // Authorization goes through all the same; nothing else of HTTP's means anything
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
	if err := apiv1.RegisterQueriesHandlerServer(context.Background(), gateway, restService{s.api}); err != nil {
		return nil, err
	}
	if err := restWatch(s, gateway); err != nil {
		return nil, err
	}
	pages := map[string]http.Handler{
		"/v1/openapi.json": page("application/json", apiv1.OpenAPI),
		"/healthz":         page("text/plain; charset=utf-8", []byte("ok\n")),
		"/readyz":          http.HandlerFunc(s.readyz),
	}
	if s.cfg.Gatherer != nil {
		pages["/metrics"] = promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{})
	}
	params := parameters()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if h, ok := pages[r.URL.Path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		if s.cfg.Pprof && strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			servePprof(w, r)
			return
		}
		r, err := s.prepare(w, r, params)
		if err != nil {
			restError(r.Context(), gateway, marshaler{}, w, r, statusOf(err))
			return
		}
		gateway.ServeHTTP(w, r)
	}), nil
}

func page(kind string, text []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
	})
}

func servePprof(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// parameters are the names that may stand in the query part of a URL.
func parameters() map[string]bool {
	known := map[string]bool{}
	for _, m := range []proto.Message{&apiv1.GetRequest{}, &apiv1.RowsRequest{}, &apiv1.WatchRequest{}} {
		list := m.ProtoReflect().Descriptor().Fields()
		for i := range list.Len() {
			known[string(list.Get(i).Name())] = true
		}
	}
	known["json_key.json"] = true
	return known
}

// prepare makes a request one for the gateway: who asks, a body of bounded size, and parameters that exist.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, known map[string]bool) (*http.Request, error) {
	p := &peer.Peer{}
	if addr, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		p.Addr = addr
	}
	if r.TLS != nil {
		p.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	r = slashes(r.WithContext(peer.NewContext(r.Context(), p)))
	if n := len(r.URL.RawQuery); n > s.cfg.Limits.Request {
		return r, query.Errorf(query.TooLarge, "a question of %d bytes exceeds the limit of %d", n, s.cfg.Limits.Request)
	}
	values := r.URL.Query()
	for name := range values {
		if !known[name] {
			return r, query.Errorf(query.InvalidRequest, "there is no parameter %.40q", name)
		}
	}
	if c := values.Get("consistency"); c != strings.ToUpper(c) {
		values.Set("consistency", strings.ToUpper(c))
		u := *r.URL
		u.RawQuery = values.Encode()
		r.URL = &u
	}
	if r.Body == nil || r.Method == http.MethodGet {
		return r, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.Limits.Request)))
	if err != nil {
		if _, ok := err.(*http.MaxBytesError); ok {
			return r, query.Errorf(query.TooLarge, "the body exceeds the limit of %d bytes", s.cfg.Limits.Request)
		}
		return r, query.Errorf(query.InvalidRequest, "the body cannot be read")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// readyz says whether the instance is ready, and why not.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	var reasons []string
	if s.cfg.Ready != nil {
		reasons = s.cfg.Ready()
	} else if m := s.source.Hosts(); m.Generation < 0 || m.Self < 0 {
		reasons = []string{"the instance is not in the group yet"}
	}
	w.Header().Set("Content-Type", "application/json")
	if len(reasons) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	b, err := marshaler{}.Marshal(map[string]any{"ready": len(reasons) == 0, "reasons": append([]string{}, reasons...)})
	if err == nil {
		_, _ = w.Write(b)
	}
}

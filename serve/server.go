package serve

import (
	"net/http"

	"google.golang.org/grpc"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Server answers questions about the stores of an app. It is used by many goroutines.
type Server struct {
	source  query.Source
	cfg     Config
	api     *service
	rest    http.Handler
	pool    *pool
	metrics *metrics
	buckets *buckets
	end     lifetime

	scans, reads        *slots // whole questions for rows, and parts of them
	watches, hopWatches *slots
}

// New returns a server for one instance of an app. It listens nowhere: that is up to Register and Handler, or Listen.
func New(source query.Source, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{
		source: source, cfg: cfg,
		scans: newSlots("scans", cfg.Limits.Scans), reads: newSlots("reads", 2*cfg.Limits.Scans),
		watches: newSlots("watches", cfg.Limits.Watchers), hopWatches: newSlots("forwarded watches", cfg.Limits.Watchers),
		buckets: newBuckets(cfg.Rate, cfg.Clock),
	}
	s.end.init(cfg.Clock)
	s.api = &service{s: s}
	s.pool = newPool(cfg.Peer, cfg.Limits)
	var err error
	if s.metrics, err = newMetrics(cfg.Registerer); err != nil {
		return nil, err
	}
	s.rest, err = newREST(s)
	return s, err
}

// Register adds the API to a gRPC server of the caller.
func (s *Server) Register(r grpc.ServiceRegistrar) { apiv1.RegisterQueriesServer(r, s.api) }

// Handler is the REST front of the API: /v1/..., its OpenAPI document at /v1/openapi.json, /healthz, /readyz, and what the
// configuration adds.
func (s *Server) Handler() http.Handler { return s.rest }

// Close ends all watches, lets questions end within a second, waits for them, and closes the connections to other instances.
// Servers that belong to the caller are the caller's to stop.
func (s *Server) Close() {
	s.end.close()
	s.pool.close()
}

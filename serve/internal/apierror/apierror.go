// Package apierror reads the errors of the query API: what an instance says when a question has no answer. Servers use it for
// what another instance has told them, clients for everything. It never talks to anybody and starts no goroutine.
package apierror

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Domain is the domain of the google.rpc.ErrorInfo of all errors.
const Domain = "tidemark"

// Read returns what a status says, and what was read, nil if that is not known. The reason is empty if the status is not of
// an instance but of the connection to it.
func Read(s *status.Status) (e *query.Error, meta *apiv1.Meta) {
	e = &query.Error{Message: s.Message()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.Domain == Domain {
				e.Reason, e.Store = query.Reason(d.Reason), d.Metadata["store"]
				e.Task, _ = query.ParseTask(d.Metadata["task"])
			}
		case *apiv1.Owner:
			h := d.GetHost()
			e.Host = query.Host{Instance: h.GetInstance(), Endpoint: h.GetEndpoint(), Rack: h.GetRack()}
		case *apiv1.Missing:
			e.Missing = d.Partitions
		case *apiv1.Meta:
			meta = d
		}
	}
	return e, meta
}

package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/internal/apierror"
)

// failure is what came instead of an answer.
type failure struct {
	*query.Error
	// answered says that an instance has said so, not the connection to it.
	answered bool
	// meta is what was read, nil if that is not known.
	meta *apiv1.Meta
}

// failureOf reads the error of a call.
func failureOf(endpoint string, err error) *failure {
	s, _ := status.FromError(err)
	f := &failure{}
	f.Error, f.meta = apierror.Read(s)
	f.answered = f.Reason != ""
	if f.answered {
		return f
	}
	f.Message, f.Err = "no answer from "+endpoint, errors.New(s.Message())
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.Aborted:
		f.Reason = query.NoOwner
	case codes.DeadlineExceeded:
		f.Reason = query.Deadline
	case codes.ResourceExhausted:
		f.Reason = query.TooLarge
		f.Message = "a message exceeds a limit of " + endpoint + " or of Config.MaxMessage"
	case codes.Unauthenticated, codes.PermissionDenied:
		f.Reason = query.Unauthenticated
	case codes.Unimplemented:
		f.Reason, f.Message = query.Failed, endpoint+" does not serve the query API"
	default:
		f.Reason = query.Failed
	}
	return f
}

// ended is why an error came when it did, and the error that came with the last answer.
type ended struct{ cause, last error }

func (e *ended) Error() string {
	if e.last == nil {
		return e.cause.Error()
	}
	return e.last.Error()
}

func (e *ended) Unwrap() []error {
	if e.last == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.last}
}

// over is the error of a question whose context has ended: what the last attempt has said, or that there was no time for
// one. errors.Is finds the error of the context in it.
func over(ctx context.Context, last *failure, attempts int) *query.Error {
	cause := ctx.Err()
	switch {
	case cause == context.Canceled:
		e := &query.Error{Reason: query.Cancelled, Message: "the question was cancelled", Err: &ended{cause: cause}}
		if last != nil {
			e.Err = &ended{cause, last.Error}
		}
		return e
	case last == nil:
		return &query.Error{Reason: query.Deadline, Message: "the deadline came before an answer", Err: &ended{cause: cause}}
	}
	e := *last.Error
	e.Message = fmt.Sprintf("%s, until the deadline after %d attempts", e.Message, attempts)
	e.Err = &ended{cause, last.Err}
	if e.Reason == query.NotOwner {
		// The caller has not asked for the owner but for an answer.
		e.Reason = query.NoOwner
	}
	return &e
}

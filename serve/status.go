package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/internal/apierror"
)

// Domain is the domain of the google.rpc.ErrorInfo of all errors.
const Domain = apierror.Domain

// code is how a reason is told. retry is when to ask again, 0: the question has to change.
type code struct {
	grpc  codes.Code
	http  int
	retry time.Duration
}

// table is the one place that maps reasons to codes.
var table = map[query.Reason]code{
	query.StoreNotFound:       {grpc: codes.NotFound, http: http.StatusNotFound},
	query.KeyNotFound:         {grpc: codes.NotFound, http: http.StatusNotFound},
	query.KeyMalformed:        {grpc: codes.InvalidArgument, http: http.StatusBadRequest},
	query.WrongKind:           {grpc: codes.InvalidArgument, http: http.StatusBadRequest},
	query.InvalidRequest:      {grpc: codes.InvalidArgument, http: http.StatusBadRequest},
	query.TokenMalformed:      {grpc: codes.InvalidArgument, http: http.StatusBadRequest},
	query.NotOwner:            {grpc: codes.FailedPrecondition, http: http.StatusMisdirectedRequest},
	query.NoOwner:             {grpc: codes.Unavailable, http: http.StatusServiceUnavailable, retry: time.Second},
	query.Restoring:           {grpc: codes.Unavailable, http: http.StatusServiceUnavailable, retry: time.Second},
	query.Moved:               {grpc: codes.Unavailable, http: http.StatusServiceUnavailable, retry: time.Second},
	query.WatermarkNotReached: {grpc: codes.DeadlineExceeded, http: http.StatusTooEarly},
	query.PositionNotReached:  {grpc: codes.DeadlineExceeded, http: http.StatusTooEarly},
	query.TooStale:            {grpc: codes.Unavailable, http: http.StatusServiceUnavailable, retry: time.Second},
	query.Partial:             {grpc: codes.Unavailable, http: http.StatusServiceUnavailable, retry: time.Second},
	query.Quota:               {grpc: codes.ResourceExhausted, http: http.StatusTooManyRequests, retry: time.Second},
	query.TooLarge:            {grpc: codes.ResourceExhausted, http: http.StatusRequestEntityTooLarge},
	query.Deadline:            {grpc: codes.DeadlineExceeded, http: http.StatusGatewayTimeout},
	query.Failed:              {grpc: codes.Internal, http: http.StatusInternalServerError},
	query.Unauthenticated:     {grpc: codes.Unauthenticated, http: http.StatusUnauthorized},
	query.Cancelled:           {grpc: codes.Canceled, http: 499},
}

// withMeta is an error about what was read.
type withMeta struct {
	err  *query.Error
	meta *apiv1.Meta
}

func (e *withMeta) Error() string { return e.err.Error() }
func (e *withMeta) Unwrap() error { return e.err }

// reasoned returns the error of a question as one with a reason.
func reasoned(err error) *query.Error {
	var e *query.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.DeadlineExceeded):
		e = &query.Error{Reason: query.Deadline, Message: "the deadline came before the answer"}
	case errors.Is(err, context.Canceled):
		e = &query.Error{Reason: query.Cancelled, Message: "the question was cancelled"}
	default:
		e = &query.Error{Reason: query.Failed, Message: "the question failed", Err: err}
	}
	return e
}

// statusOf makes an error one of gRPC.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	e := reasoned(err)
	c, ok := table[e.Reason]
	if !ok {
		c = table[query.Failed]
	}
	message := e.Message
	if e.Err != nil {
		message += ": " + e.Err.Error()
	}
	info := &errdetails.ErrorInfo{Reason: string(e.Reason), Domain: Domain, Metadata: map[string]string{}}
	if e.Store != "" {
		info.Metadata["store"] = e.Store
	}
	if e.Task != (query.Task{}) {
		info.Metadata["task"] = e.Task.String()
	}
	details := []protoadapt.MessageV1{info}
	if e.Reason == query.NotOwner && e.Host != (query.Host{}) {
		details = append(details, &apiv1.Owner{Host: hostOf(e.Host), Task: e.Task.String()})
	}
	if len(e.Missing) > 0 {
		details = append(details, &apiv1.Missing{Partitions: e.Missing})
	}
	var m *withMeta
	if errors.As(err, &m) {
		details = append(details, m.meta)
	}
	if c.retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(c.retry)})
	}
	s := status.New(c.grpc, message)
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// Error returns the error of a call of the API as the one that the instance had: an *query.Error. An error that no instance
// has made is NoOwner if the instance could not be reached, Deadline, or Failed.
func Error(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return reasoned(err)
	}
	e, meta := apierror.Read(s)
	if e.Reason == "" {
		switch s.Code() {
		case codes.Unavailable:
			e.Reason = query.NoOwner
		case codes.DeadlineExceeded:
			e.Reason = query.Deadline
		case codes.Canceled:
			e.Reason = query.Cancelled
		case codes.ResourceExhausted:
			e.Reason = query.TooLarge
		case codes.Unauthenticated:
			e.Reason = query.Unauthenticated
		default:
			e.Reason = query.Failed
		}
	}
	if meta != nil {
		return &withMeta{e, meta}
	}
	return e
}

// MetaOf returns what the question that ended with an error of Error was read from, nil if that is not known.
func MetaOf(err error) *apiv1.Meta {
	var m *withMeta
	if errors.As(err, &m) {
		return m.meta
	}
	return nil
}

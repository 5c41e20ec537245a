package s3

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// retry calls fn until it succeeds, or fails for good, or has been called often enough. The client's own retries are off: its
// budget for all requests together would turn a short outage into errors, and it cannot resume a body.
func (s *Store) retry(ctx context.Context, fn func() error) error {
	for attempt := 1; ; attempt++ {
		err := fn()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if attempt >= s.opts.MaxAttempts || !passes(err) {
			return err
		}
		if err := s.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 20 * time.Second
)

// pause waits after the nth failure in a row: a random time up to twice that of the failure before, so that many who fail
// together do not come again together.
func (s *Store) pause(ctx context.Context, n int) error {
	most := min(firstPause<<min(n-1, 10), maxPause)
	t := s.clk.NewTimer(rand.N(most))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}

// passes says whether the same request may succeed later.
func passes(err error) bool {
	if errors.Is(err, errBody) {
		return false
	}
	if p, ok := errors.AsType[*partialError](err); ok {
		return p.passes
	}
	if codePasses(code(err)) {
		return true
	}
	switch n := status(err); {
	case n == http.StatusNotImplemented:
		return false
	case n >= 500, n == http.StatusRequestTimeout, n == http.StatusTooManyRequests:
		return true
	case n >= 300:
		return false
	}
	return true // no answer, or one that was cut off
}

// codePasses knows the codes of errors that pass and may come with any status.
func codePasses(code string) bool {
	switch code {
	case "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "RequestTimeTooSkewed", "Throttling", "ThrottlingException",
		"RequestLimitExceeded", "BandwidthLimitExceeded", "BadDigest", "IncompleteBody", "OperationAborted", "ConditionalRequestConflict":
		return true
	}
	return false
}

// status returns the HTTP status of the answer, 0 if there was none.
func status(err error) int {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return e.HTTPStatusCode()
	}
	return 0
}

// code returns the server's code of an error, "" if there is none.
func code(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// missing reports that there is no such object. A bucket that is missing is another matter.
func missing(err error) bool {
	c := code(err)
	return c == "NoSuchKey" || c == "NotFound"
}

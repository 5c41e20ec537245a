package query

import "fmt"

// Reason is why a question has no answer. The names are part of the API.
type Reason string

// The reasons. What comes behind is the code of gRPC and of HTTP.
const (
	// StoreNotFound: the app has no store of that name. NOT_FOUND, 404.
	StoreNotFound Reason = "STORE_NOT_FOUND"
	// KeyNotFound: the store has no row of that key. NOT_FOUND, 404.
	KeyNotFound Reason = "KEY_NOT_FOUND"
	// KeyMalformed: the key is none of the type of the store. INVALID_ARGUMENT, 400.
	KeyMalformed Reason = "KEY_MALFORMED"
	// WrongKind: stores of that kind do not answer this question. INVALID_ARGUMENT, 400.
	WrongKind Reason = "WRONG_KIND"
	// InvalidRequest: something else in the question is wrong. INVALID_ARGUMENT, 400.
	InvalidRequest Reason = "INVALID_REQUEST"
	// TokenMalformed: a page token, watch token or position was not made by this app for this question. INVALID_ARGUMENT, 400.
	TokenMalformed Reason = "TOKEN_MALFORMED"
	// NotOwner: another instance runs the task; the details name it. FAILED_PRECONDITION, 421.
	NotOwner Reason = "NOT_OWNER"
	// NoOwner: no instance runs the task at the moment, or it cannot be reached. UNAVAILABLE, 503.
	NoOwner Reason = "REBALANCING"
	// Restoring: the task is on this instance and its state is not there yet. UNAVAILABLE, 503.
	Restoring Reason = "RESTORING"
	// Moved: the task has left this instance in the middle of the answer. UNAVAILABLE, 503.
	Moved Reason = "MOVED"
	// WatermarkNotReached: the deadline came before the minimum watermark. DEADLINE_EXCEEDED, 425.
	WatermarkNotReached Reason = "WATERMARK_NOT_REACHED"
	// PositionNotReached: the deadline came before the position. DEADLINE_EXCEEDED, 425.
	PositionNotReached Reason = "POSITION_NOT_REACHED"
	// TooStale: the lag of the only state there is exceeds what was allowed. UNAVAILABLE, 503.
	TooStale Reason = "TOO_STALE"
	// Partial: some partitions have no answer; the details name them. UNAVAILABLE, 503.
	Partial Reason = "PARTIAL"
	// Quota: too many scans, watchers or bytes at a time. RESOURCE_EXHAUSTED, 429.
	Quota Reason = "QUOTA"
	// TooLarge: a row or a request exceeds the limit of its size. RESOURCE_EXHAUSTED, 413.
	TooLarge Reason = "TOO_LARGE"
	// Deadline: the deadline came before the answer. DEADLINE_EXCEEDED, 504.
	Deadline Reason = "DEADLINE"
	// Unauthenticated: who asks is not known. UNAUTHENTICATED, 401.
	Unauthenticated Reason = "UNAUTHENTICATED"
	// Cancelled: who asked does not wait any more. CANCELLED, 499.
	Cancelled Reason = "CANCELLED"
	// Failed: the store could not be read. INTERNAL, 500.
	Failed Reason = "FAILED"
)

// Error is a question without an answer.
type Error struct {
	Reason Reason
	// Message says what was wrong and what to change.
	Message string
	// Store, Task and Host say where, as far as it is known.
	Store string
	Task  Task
	Host  Host
	// Missing are partitions without an answer, for Partial.
	Missing []int32
	// Err is the cause, nil if there is none.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("query: %s: %s: %v", e.Reason, e.Message, e.Err)
	}
	return fmt.Sprintf("query: %s: %s", e.Reason, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is compare reasons: errors.Is(err, &query.Error{Reason: query.NotOwner}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// Retry says whether the same question may have an answer in a moment, here or on another instance.
func (e *Error) Retry() bool {
	switch e.Reason {
	case NotOwner, NoOwner, Restoring, Moved:
		return true
	}
	return false
}

// Errorf makes an error with a reason.
func Errorf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Message: fmt.Sprintf(format, args...)}
}

package processor

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Stages of an Error: what was being done when the record failed.
const (
	StageDecodeKey   = "decode-key"   // the key's bytes are not what the codec expects
	StageDecodeValue = "decode-value" // the value's bytes are not what the codec expects
	StageEncode      = "encode"       // a key or value could not be encoded for a topic or a store
	StageUser        = "user"         // a user function returned an error or panicked (then Stack is set)
	StageNullKey     = "null-key"     // a keyed operator met a record without key
	StageNullValue   = "null-value"   // a null value where the type has no value that stands for null
	StageTimestamp   = "timestamp"    // the record has no event time
)

// ErrNull is the cause of errors of the stages null-key and null-value.
var ErrNull = errors.New("null where a value is needed")

// ErrNoTimestamp is the cause of errors of the stage timestamp: a record without event time where one is needed.
var ErrNoTimestamp = errors.New("no timestamp")

// Error says that one record cannot be processed: the data or user code is at fault, not the machinery. Errors of the
// state or of the output are returned as they are, never as an Error.
type Error struct {
	Operator string // the operator that failed, as Describe names it
	Stage    string // one of the Stage constants
	Key      []byte // a copy of the encoded key at that point; nil is null
	Err      error
	Stack    []byte // of a panic, else nil
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("processor: %s: %s: %v", e.Operator, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail builds the Error of an operator for the record in hand. An error that is an Error already keeps its operator.
func (c *Context) fail(op Op, stage string, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Operator: c.operators[op], Stage: stage, Key: cloneKey(c.key), Err: err}
}

// panicked builds the Error of a panic in a user function.
func (c *Context) panicked(p any) error {
	if c.broken != nil {
		return c.broken
	}
	err, ok := p.(error)
	if ok {
		err = fmt.Errorf("panic: %w", err)
	} else {
		err = fmt.Errorf("panic: %v", p)
	}
	return &Error{Operator: c.operators[c.op], Stage: StageUser, Key: cloneKey(c.key), Err: err, Stack: debug.Stack()}
}

// cloneKey copies a key, keeping the difference between empty and nil.
func cloneKey(key []byte) []byte {
	if key == nil {
		return nil
	}
	return append([]byte{}, key...)
}

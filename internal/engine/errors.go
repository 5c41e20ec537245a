package engine

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Errors that end Run. Each is wrapped in a message that names the topic or the record and what to change.
var (
	// ErrForeignState: a committed offset, a progress record and the internal topics do not belong together.
	ErrForeignState = errors.New("state of another application or of an unfinished reset")
	// ErrOffsetsChanged: the group's committed offsets are not those of the last commit of this app.
	ErrOffsetsChanged = errors.New("committed offsets were changed from outside")
	// ErrChangelogLost: a store that the progress record lists has no changelog topic any more.
	ErrChangelogLost = errors.New("changelog topic lost")
	// ErrChangelogTruncated: records of a changelog that are needed have been deleted.
	ErrChangelogTruncated = errors.New("changelog truncated")
	// ErrTopicRecreated: a topic was deleted and made again; its offsets mean nothing now.
	ErrTopicRecreated = errors.New("topic was deleted and created again")
	// ErrTopicMissing: an input or output topic does not exist.
	ErrTopicMissing = errors.New("topic does not exist")
	// ErrPartitionMismatch: partition counts do not fit together.
	ErrPartitionMismatch = errors.New("partition counts do not match")
	// ErrTopicConfig: an internal topic is not configured as the app needs it.
	ErrTopicConfig = errors.New("topic configuration does not fit")
	// ErrSourceOffsetLost: the committed input offset is below the log start.
	ErrSourceOffsetLost = errors.New("committed input offset is no longer in the log")
	// ErrDataLoss: the input log ends before the committed offset.
	ErrDataLoss = errors.New("input log was truncated below the committed offset")
	// ErrNoTransactions: the broker does not support what exactly-once needs.
	ErrNoTransactions = errors.New("broker does not support transactions")
	// ErrStateDirLocked: another process uses the state directory.
	ErrStateDirLocked = errors.New("state directory is locked by another process")
	// ErrIncompatible: the topology cannot take over the running state.
	ErrIncompatible = errors.New("topology is incompatible with the running state")
	// ErrNotAuthorized: a right on the broker is missing.
	ErrNotAuthorized = errors.New("not authorized")
	// ErrClosed: the app was closed.
	ErrClosed = errors.New("app is closed")
)

// RecordError is a record that cannot be processed and whose policy is to fail.
type RecordError struct {
	Topic     string
	Partition int32
	Offset    int64
	Operator  string // the operator that refused it, empty for the source
	Key       []byte // the encoded key where it failed, nil when unknown; may hold user data, so it is not in the text
	Stage     string // decode-key, decode-value, null-key, user, encode, oversize, timestamp, …
	Err       error
	Stack     []byte // of a panic in user code, else nil
}

func (e *RecordError) Error() string {
	at := fmt.Sprintf("%s/%d offset %d", e.Topic, e.Partition, e.Offset)
	if e.Operator != "" {
		at += ", operator " + e.Operator
	}
	return fmt.Sprintf("tidemark: record %s: %s: %v", at, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// notAuthorized says whether the broker refused err for a missing right: only a person can mend that.
func notAuthorized(err error) bool {
	for _, k := range []error{ErrNotAuthorized, kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
		kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// named gives an error about a missing right, wherever it comes from, the name users know.
func named(err error) error {
	if err == nil || !notAuthorized(err) || errors.Is(err, ErrNotAuthorized) {
		return err
	}
	return fmt.Errorf("tidemark: %w: %w", ErrNotAuthorized, err)
}

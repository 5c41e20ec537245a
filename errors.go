package tidemark

import "github.com/tidemark/tidemark/internal/engine"

// Errors that Run returns, wrapped in a message that names the topic, the record or the setting and says what
// to change. Test with errors.Is.
var (
	// ErrChangelogLost: a store that the last commit lists has lost its changelog topic.
	ErrChangelogLost = engine.ErrChangelogLost
	// ErrChangelogTruncated: records of a changelog that are needed have been deleted.
	ErrChangelogTruncated = engine.ErrChangelogTruncated
	// ErrClosed: the App was closed, or has run already.
	ErrClosed = engine.ErrClosed
	// ErrDataLoss: the input log ends before the committed offset.
	ErrDataLoss = engine.ErrDataLoss
	// ErrForeignState: committed offsets, last commit and internal topics do not belong together.
	ErrForeignState = engine.ErrForeignState
	// ErrIncompatible: the topology cannot take over the running state. The error is an *UpgradeError.
	ErrIncompatible = engine.ErrIncompatible
	// ErrNoTransactions: the broker does not support what exactly-once needs.
	ErrNoTransactions = engine.ErrNoTransactions
	// ErrNotAuthorized: a right on the broker is missing.
	ErrNotAuthorized = engine.ErrNotAuthorized
	// ErrOffsetsChanged: the group's committed offsets are not those of the last commit.
	ErrOffsetsChanged = engine.ErrOffsetsChanged
	// ErrPartitionMismatch: partition counts do not fit together.
	ErrPartitionMismatch = engine.ErrPartitionMismatch
	// ErrSourceOffsetLost: the committed input offset is below the log start.
	ErrSourceOffsetLost = engine.ErrSourceOffsetLost
	// ErrStateDirLocked: another process uses the state directory.
	ErrStateDirLocked = engine.ErrStateDirLocked
	// ErrTopicConfig: an internal topic is not configured as the app needs it.
	ErrTopicConfig = engine.ErrTopicConfig
	// ErrTopicMissing: an input or output topic does not exist.
	ErrTopicMissing = engine.ErrTopicMissing
	// ErrTopicRecreated: a topic was deleted and made again.
	ErrTopicRecreated = engine.ErrTopicRecreated
)

// UpgradeError says why a topology cannot take over the state of the app: every difference, in its text one per line. An
// instance with such a topology waits without tasks while instances with the one in force run, and Run returns the
// error once there are none. It wraps ErrIncompatible.
type UpgradeError = engine.UpgradeError

// RecordError is a record that cannot be processed under the policy Fail. Its fields name the record, the
// operator and the stage; Stack is set for a panic in user code.
type RecordError = engine.RecordError

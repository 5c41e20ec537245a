package tidemark

import (
	"math/rand/v2"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/engine"
)

// Guarantee says what a crash may do to results.
type Guarantee = engine.Guarantee

// The guarantees.
const (
	// ExactlyOnce moves input offsets, state and output in one Kafka transaction.
	ExactlyOnce = engine.ExactlyOnce
	// AtLeastOnce commits offsets after the output is acknowledged; a crash may count records twice.
	AtLeastOnce = engine.AtLeastOnce
)

// Policy says what happens to something that cannot be processed.
type Policy = engine.Policy

// The policies.
const (
	// Fail ends Run with an error after everything before was committed.
	Fail = engine.Fail
	// DeadLetter sends the record to the dead-letter topic in the same transaction and goes on.
	DeadLetter = engine.DeadLetter
	// Resume goes on from the last commit (changed group offsets only).
	Resume = engine.Resume
)

// Start says where an input begins that the app has never read.
type Start = engine.Start

// The starts.
const (
	// Earliest begins with the oldest record the topic still holds.
	Earliest = engine.Earliest
	// Latest begins with records that arrive after the first start.
	Latest = engine.Latest
)

// Events are optional callbacks; see the fields. They run on the engine's goroutines and must return quickly.
type Events = engine.Events

// What the events carry.
type (
	// PhaseInfo is a stage of the instance.
	PhaseInfo = engine.PhaseInfo
	// TaskInfo is a change of a task's state.
	TaskInfo = engine.TaskInfo
	// RestoreInfo is the progress of a restore.
	RestoreInfo = engine.RestoreInfo
	// CommitInfo is a committed transaction.
	CommitInfo = engine.CommitInfo
	// StuckInfo is a partition held up by a transaction that nobody ends.
	StuckInfo = engine.StuckInfo
	// TaskState is the stage of life of a task.
	TaskState = engine.TaskState
)

// What Watermarks returns.
type (
	// Watermark is how far the event time of one operator in one task has got, and what keeps it from going on.
	Watermark = engine.Watermark
	// Holder is the input that keeps a watermark where it is.
	Holder = engine.Holder
	// HolderReason is what is known about why.
	HolderReason = engine.HolderReason
)

// Why an input holds a watermark.
const (
	HeldByData        = engine.HeldByData
	HeldBySilence     = engine.HeldBySilence
	HeldByTransaction = engine.HeldByTransaction
	HeldByUpstream    = engine.HeldByUpstream
	HeldByUnheard     = engine.HeldByUnheard
)

// The states of a task.
const (
	TaskOpening = engine.Opening
	TaskRunning = engine.Running
	TaskClosing = engine.Closing
	TaskClosed  = engine.Closed
)

// Testing holds what tests inject: the passage of time, randomness, the disk, and the places where a crash is
// to happen. The zero value is what a service uses.
type Testing struct {
	// Clock replaces the wall clock.
	Clock clock.Clock
	// Rand replaces the source of randomness.
	Rand *rand.Rand
	// FS replaces the file system under StateDir.
	FS *FS
	// CrashPoint is called at the numbered steps of the commit protocol.
	CrashPoint func(engine.Point)
	// SnapshotGrace replaces snapshot.Grace, how old an object must be before it may be deleted.
	SnapshotGrace time.Duration
}

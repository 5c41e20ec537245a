package engine

import (
	"time"

	"github.com/tidemark/tidemark/processor"
)

// Events are optional callbacks. They run on the engine's goroutines and must return quickly.
type Events struct {
	// Phase is told when the instance enters a stage of its start or end.
	Phase func(PhaseInfo)
	// Task is told when a task opens, runs, or is closed.
	Task func(TaskInfo)
	// Restore is told when a task's restore begins, about once a second while it runs, and when it has finished.
	Restore func(RestoreInfo)
	// Commit is told of every committed transaction.
	Commit func(CommitInfo)
	// Snapshot is told of every snapshot that was uploaded or has failed.
	Snapshot func(SnapshotInfo)
	// Stuck is an alarm: a partition is held up by a transaction that nobody ends.
	Stuck func(StuckInfo)
}

// PhaseInfo is a stage of the instance.
type PhaseInfo struct {
	Phase string
	At    time.Time
}

// TaskInfo is a change of a task's state.
type TaskInfo struct {
	Task  processor.TaskID
	State TaskState
	Seq   uint64 // last commit, once known
	At    time.Time
}

// RestoreInfo is the progress of a restore.
type RestoreInfo struct {
	Task     processor.TaskID
	Source   string // local, snapshot, lazy snapshot or changelog
	Records  int64  // applied so far
	Bytes    int64
	Done     int64 // offsets passed so far
	Total    int64 // offsets to pass
	Finished bool
	Seen     time.Time     // when offsets, ends of logs and the last commit were known, before the database was opened
	At       time.Time     // of the event; of the beginning when finished
	Took     time.Duration // when finished
}

// CommitInfo is a committed transaction.
type CommitInfo struct {
	Worker  int
	Tasks   int
	Records int   // input records in it
	Bytes   int64 // output, changelog and progress
	Took    time.Duration
}

// SnapshotInfo is what became of a snapshot. One that was uploaded counts from the next commit of its task on.
type SnapshotInfo struct {
	Task     processor.TaskID
	Seq      uint64 // the commit it holds
	Bytes    int64  // of all its files
	Uploaded int64  // bytes of those that were new
	Took     time.Duration
	Err      error // why there is none
	Alarm    bool  // several in a row have failed
}

// StuckInfo is a partition whose last stable offset does not move.
type StuckInfo struct {
	Topic      string
	Partition  int32
	ProducerID int64
	Epoch      int32
	Offset     int64
	Since      time.Duration
}

func (e *Engine) taskEvent(t *task, s TaskState) {
	if f := e.cfg.Events.Task; f != nil {
		f(TaskInfo{Task: t.id, State: s, Seq: t.lastSeq.Load(), At: e.cfg.Clock.Now()})
	}
}

func (e *Engine) restoreEvent(i RestoreInfo) {
	if f := e.cfg.Events.Restore; f != nil {
		f(i)
	}
}

func (e *Engine) stuck(i StuckInfo) {
	if f := e.cfg.Events.Stuck; f != nil {
		f(i)
	}
}

// Package taskstore keeps the databases of an instance's tasks on a disk, as the engine wants them: one directory per
// task, opened, emptied, set aside, copied for snapshots and made from snapshots.
//
// It must never decide what becomes of a task's state: which database is used, and where it comes from, is the engine's
// business. It starts no goroutine. Its methods may be called by several, for different tasks; for one task the engine
// calls them one after the other.
package taskstore

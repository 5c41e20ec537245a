package engine

import "sync/atomic"

// A lease says that this instance may commit a task's partitions. All partitions of a task are assigned and
// lost together, and every assignment makes a new task with a new lease: the pointer is the epoch.
//
// It is given up by the group callbacks before they return, hence before the client joins the next
// generation, and never taken again. A commit reads the group metadata first and looks at the leases after:
// metadata read before a lease was still held is of a generation in which the partition was ours, or the
// broker refuses it.
//
// One thing the callbacks do not tell: a member that the group has dropped while it was joining is told so by the
// answer, and the client joins again at once, under a new member id, with the partitions it had. In between others may have
// had them. So a lease is good under the member id it was given with only: under another one nothing is committed, and
// partitions that the new member is given again are new leases and new tasks.
type lease struct {
	gone   atomic.Bool
	member string // who was given the partitions
}

func (l *lease) giveUp()    { l.gone.Store(true) }
func (l *lease) lost() bool { return l.gone.Load() }

package engine

import "sync/atomic"

// A lease says that this instance may commit a task's partitions. All partitions of a task are assigned and
// lost together, and every assignment makes a new task with a new lease: the pointer is the epoch.
//
// It is given up by the group callbacks before they return, hence before the client joins the next
// generation, and never taken again. A commit reads the group metadata first and looks at the leases after:
// metadata read before a lease was still held is of a generation in which the partition was ours, or the
// broker refuses it.
type lease struct{ gone atomic.Bool }

func (l *lease) giveUp()    { l.gone.Store(true) }
func (l *lease) lost() bool { return l.gone.Load() }

package query

import "context"

// Source is one instance of an app, as those who ask see it. It may be used by many goroutines.
type Source interface {
	// Stores returns the stores of the app that can be asked, by name.
	Stores() []*Store
	// Hosts returns the present map of the group.
	Hosts() *Map
	// View returns the state of a task of this instance as soon as it meets the wishes. The caller closes it, soon: it holds
	// on to memory. The error is an *Error: NotOwner at once if the task is not here, Restoring if it has no state
	// to read yet, and what was not reached when ctx ends.
	View(ctx context.Context, t Task, w Want) (*View, error)
	// Watch returns the changes of a task of this instance. The error is as that of View.
	Watch(ctx context.Context, t Task, s WatchSpec) (Watcher, error)
}

// WatchSpec says what to watch, and from where.
type WatchSpec struct {
	Store *Store
	// Range of keys, as in a Scan of the store. For a store of windows or sessions it is one of users' keys.
	Range Range
	// From is the number of the commit whose changes, and everything before, the watcher has seen. 0: nothing, so that it
	// first gets the rows there are.
	From uint64
}

// Changes are what one commit has done to the rows of a watcher, or a part of the rows there are.
type Changes struct {
	// Meta is that of the commit.
	Meta Meta
	// Rows are the changed rows, in no particular order, at most one of each. Of rows that were there when the watch began,
	// none is twice.
	Rows []Row
	// Reset says that a watcher has to forget what it has: this begins the rows there are. More says that more of them
	// follow: only when More is false the rows are complete.
	Reset, More bool
}

// Watcher waits for changes. It is used by one goroutine.
type Watcher interface {
	// Next waits for the next changes. Several commits may come as one: of every row the latest state is told. A watcher
	// that is so slow that changes have left memory gets the rows there are, with Reset. The error is an *Error: Moved when
	// the task leaves the instance, Deadline when ctx ends.
	Next(ctx context.Context) (Changes, error)
	// Close ends the watch.
	Close()
}

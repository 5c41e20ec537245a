// Package client asks the instances of an app about their stores. It keeps the map of the group, goes to the instance that
// has a key, and when tasks move it looks again until the deadline. Client speaks in the messages of the API; Store gives a
// Reader, which speaks in keys and values of Go types.
//
// It never answers from what it has kept, never puts rows of two pages or two instances into one answer of a task without
// the later one reflecting the earlier, and leaves no goroutine behind: everything runs on the goroutine of the caller, but
// the parts of a MultiGet, which end before it returns, and those of the gRPC connections, which Close ends.
//
// Errors are *query.Error, as those of reads in the process of the app:
//
//	errors.Is(err, &query.Error{Reason: query.PositionNotReached})
package client

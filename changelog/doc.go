// Package changelog holds what a task leaves behind in Kafka and how it is read
// back: progress records and offset metadata, the names and configurations of an
// application's internal topics, the records of its control topic, the restore
// reader, and the broker requests around a take-over (stable offsets, fencing,
// open transactions, purging).
//
// It must never decide what a position means: whether a restored task may run
// is the caller's judgement. It never commits offsets, never writes to a user's
// topic, and never ends a read by counting records.
//
// Codecs, names, wants and the inheritance of sub-topology ids are pure functions.
// Everything that talks to a broker runs on the caller's goroutine and uses the
// client the caller hands in; Reader owns a client of its own and, during a Read,
// goroutines that have ended before Read returns.
package changelog

// Package objects is the object store that snapshots are kept in, as little of one as they need: whole
// objects by key, ranged reads, ordered listing, deletion. NewDir keeps them in a directory, NewMem in
// memory; package changelog/s3 in a bucket. WithFaults and Limit wrap any of them.
//
// It must never know what an object means: formats, references and collection are the business of
// package changelog/snapshot. It never logs and never retries: what an error means to a snapshot is its
// caller's judgement, and only changelog/s3 knows which failures of a network pass.
//
// Nothing here starts a goroutine. All stores may be used from several goroutines at once, and a call
// runs on the caller's.
package objects

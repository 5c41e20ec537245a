// Package s3 keeps snapshots in a bucket of Amazon S3 or of a server that speaks its protocol. It is a package
// of its own so that only programs that want a bucket link the client.
//
// It does what a network needs and package objects leaves out: retries with full jitter, resumed reads, large
// objects in parts, checksums on the way in. It must never decide what an object means, never list to learn what
// is there to be trusted, and never log.
//
// Objects are put on the condition that their key is free. Where it is taken, what lies there is replaced: it may
// be damaged, and it counts as modified only when it is written. Retrying a Put whose answer was lost is told from
// that by the age and size of what lies there.
//
// A process that dies in the middle of a large object leaves its parts in the bucket, where no listing shows
// them. A lifecycle rule of the bucket that aborts incomplete uploads after a day removes them.
//
// A Store starts no goroutines beyond those of its HTTP connections, and may be used from several at once.
package s3

// Package store holds the state of one task: typed views above an ordered byte store.
//
// A write lives in three places, one after the other. It is first a typed value in a View, in the generation that is
// being processed. Seal encodes every row the generation has touched, once, and hands out one Change per row for the
// changelog. Commit, called when the transaction that carries those changes has ended, makes the generation part of the
// committed layer. Persist at last writes the layer to the DB in one sorted run, together with the progress of its last
// commit. So the DB is always an exact prefix of the committed history, and DB plus layer are the committed history.
//
//	Put, Set ──> generation g+1 ──Seal──> generation g ──Commit──> layer ──Freeze──> frozen layer ──Write──> DB
//	             (typed rows)             (encoded, in flight)     (encoded)         (being written)
//
// Rollback drops generations g and g+1 and never touches what is committed. Processing goes on into g+1 while g is in
// flight, so a row may be dirty in both.
//
// The kinds of stores differ in the order of their rows, in their views and in their layout in the changelog; all are rows
// of a View. A store may have a floor: rows below it are gone at once and leave the DB with one range delete. A floor and
// what views remember beside their rows belong to the State, not to the changelog: whoever opens a State, or rolls it
// back, expires again what the restored watermark has expired, and takes new queues.
//
// The package must never talk to Kafka, read a clock or start a goroutine. A State, its views and its cursors belong
// to one goroutine, the worker of the task. The exception is Frozen.Write, which may run on any one goroutine while
// the worker goes on; DB says what it must allow for that.
package store

// Package pebblestore is the store.DB of production: one Pebble database per task.
//
// It runs Pebble without a write-ahead log, for the changelog in Kafka is the log. Large sorted runs go in as table
// files (Load), small batches through the memtable (Apply); a flush comes between a batch and a later run, so a
// database that is opened again is always an exact prefix of what was written.
//
// The package must never end the process, whatever Pebble thinks of the state of the disk, and never delete state it
// has found readable. When Pebble meets an error it would die of, the database shuts its file system for writing first:
// nothing that follows can harm what is on disk. From then on every call returns the error, and the directory can be
// opened again after Close. No type of Pebble appears in the interface.
//
// A checkpoint is the database of one moment in a directory of its own; a restore makes a database of such files. OpenLazy
// opens one while its files are still in a remote store: reads fetch what they need, a few goroutines fetch the rest, and
// when all is here and its sums are right, the directory is that of an ordinary database. What is not verified never
// counts as a file.
//
// A DB follows the rules of store.DB: one goroutine writes, another may read at the same time. Pebble's own goroutines
// flush and compact behind it until Close, and those of OpenLazy fetch.
package pebblestore

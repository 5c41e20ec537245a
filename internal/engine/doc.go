// Package engine runs a topology on Kafka: it owns the Kafka clients of the processing path and every
// goroutine of it.
//
// One goroutine, the poll loop (source.go), fetches with the group client and hands batches to the queues of
// the input partitions. Each worker (worker.go) is one goroutine with one transactional producer; it owns
// some tasks, takes records from their queues, runs them through the task's operators and, at every commit
// tick, seals what they wrote into a flight. One committer goroutine per worker (commit.go) ends the
// transaction of the flight while the worker goes on processing. Tasks are opened (open.go) by goroutines of
// the manager (manager.go), which is told of assignments by the callbacks of the group client.
//
// The steps of the commit protocol are numbered in docs/architecture.md; the numbers appear in commit.go and
// as crash points in crash.go.
//
// The package must never apply a write to a store before the transaction that carries it is known to be
// committed, never commit a partition whose lease is gone, and never leave Run because of an abort, a fenced
// producer, a lost lease or a rebalance.
package engine

// Package embedded runs a Kafka broker inside the process: for the quickstart, where nothing else
// has to be installed, and for tests, where it can also live on a Network in memory and so inside a
// testing/synctest bubble, with faults set per client and per request.
//
// It is no store of record. The broker (franz-go's kfake) ends a transaction at once and never
// answers CONCURRENT_TRANSACTIONS, accepts a member without a generation in TxnOffsetCommit, and
// handles every request in one goroutine. What rests on those points is tested on a real broker.
//
// In a bubble, time stands still while a goroutine waits for a mutex. kgo holds one while a
// synchronous commit is on its way and its automatic commit asks for it, so a group consumer there
// needs kgo.DisableAutoCommit.
//
// The goroutines of a Broker end with Close; a Network has none.
package embedded

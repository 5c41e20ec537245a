// Package workload holds what the verification runs process: small workloads in one topology whose
// output tells, record by record, whether anything was lost or counted twice.
//
//	seq   (key, 1..n)            -> per key count, highest number and checksum, latest value per commit
//	sum   (key, amount)          -> per key running sum, every update: output i belongs to input i
//	bank  transfer between two   -> two legs through a repartition topic -> balances, every update
//	events  times out of order and too late, ids sent again -> each id once -> every kind of window in every mode
//
// It is pure: no goroutines, no clock, no Kafka. It must not know how its output is checked; package check
// does, from the formats declared here.
package workload

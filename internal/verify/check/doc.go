// Package check judges the output of the workloads: it is told of every input that is in the log and of every
// committed output, in the order of their partitions, and counts what was lost, counted twice or wrong.
//
// The checkers compute what must come out by themselves, from the inputs alone. They must never look at the
// code they judge, beyond the formats of package workload, nor at each other. They are pure; one goroutine
// uses them.
package check

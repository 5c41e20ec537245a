// Package sim runs the real engine in simulated time: the in-process broker, an in-memory network and disks
// that crash, inside a testing/synctest bubble, with faults drawn from a seed. Minutes pass in milliseconds.
//
// A World must be made and run inside a bubble. Its script runs on the caller's goroutine and is the only one
// that changes it, but for crashes at a point, which happen on the goroutine of the engine that got there.
// A seed fixes the faults and their times, not the order in which goroutines run: a failure comes back with
// its seed often, not always.
package sim

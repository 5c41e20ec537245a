// Package serve answers questions about the stores of an app over gRPC and REST: on every instance, for all partitions. It
// asks the instance that runs a task, with one hop, and goes on asking while tasks move until the deadline.
//
// It never reads state that is not committed, never puts rows of two states of one task into one answer, and never hops
// twice. Its handlers run on the goroutines of the gRPC and HTTP servers; a question over several partitions and a watch have
// goroutines of their own, which end before their handler does.
package serve

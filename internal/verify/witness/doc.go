// Package witness stands between Kafka and the checkers: it produces the inputs of a run and keeps what was
// acknowledged, and it reads inputs, committed outputs and changelogs as any other client would.
//
// It must not use the engine's way of reading (package changelog): a mistake there must not hide itself.
// It runs on its caller's goroutine; only acknowledgements arrive on the producing client's.
package witness

// Command verify is the proof that an app neither loses nor duplicates: it runs real instances as child
// processes against a real broker, kills and freezes both, and lets independent checkers judge the output.
//
//	go run ./internal/verify -crash                      every crash point of the commit protocol, all workloads
//	go run ./internal/verify -chaos -minutes 5 -fault kill -workload event-time
//	go run ./internal/verify -sim -seeds 10000           the engine in simulated time, random faults by seed
//	go run ./internal/verify -mutants                    edits of the code that the checkers and tests must notice
//
// The program starts and stops everything it needs. It exits with status 1 when anything is lost, doubled,
// wrong, or not explained. It must never be linked into a service.
//
// Goroutines: the main one, one per child process that waits for its end, and those of the Kafka clients.
package main

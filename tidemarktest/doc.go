// Package tidemarktest runs a topology in memory, for tests: without a broker, without goroutines, and with a clock that
// stands still until it is told to move. What it runs is the topology's own tasks; what it models is everything around
// them: partitions, transactions, commits, repartition topics, changelogs, crashes, rebalances and the ways of restore.
//
//	d := tidemarktest.New(t, topology, tidemarktest.Options{})
//	in := tidemarktest.Input[string, int64](d, "in")
//	out := tidemarktest.Output[string, int64](d, "out")
//	in.Send("a", 1, tidemarktest.At(noon))
//	d.Commit()
//	for _, r := range out.ReadAll() { … }
//
// A record is processed when it is sent. What comes of it shows at the next commit, as a reader of committed records
// would see it: Commit makes one, and Advance makes one per commit interval as long as there is something to commit.
//
// Histories are the same in text form: see RunHistories.
//
// A Driver belongs to one goroutine. It never touches the network, the disk or the system's clock.
package tidemarktest

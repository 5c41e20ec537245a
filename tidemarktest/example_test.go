package tidemarktest_test

import (
	"fmt"
	"time"

	"github.com/tidemark/tidemark/tidemarktest"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// perMinute counts visits per page and minute, with early results every ten seconds.
func perMinute() *topology.Topology {
	t := topology.New("visits")
	t.Stream[string, string]("visits").
		Timestamps(nil, watermark.OutOfOrderness(5*time.Second)).
		Window(window.Tumbling(time.Minute), window.AllowedLateness(time.Minute), window.Early(window.Every(10*time.Second))).
		Count("per-minute").
		To("visits-per-minute")
	return t
}

func Example() {
	noon := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	d := tidemarktest.New(nil, perMinute(), tidemarktest.Options{Start: noon}) // in a test: New(t, …)
	visits := tidemarktest.Input[string, string](d, "visits")
	counts := tidemarktest.Output[string, int64](d, "visits-per-minute")

	visits.Send("/", "alice", tidemarktest.At(noon.Add(1*time.Second)))
	visits.Send("/", "bob", tidemarktest.At(noon.Add(2*time.Second)))
	d.Advance(11 * time.Second)
	visits.Send("/", "alice", tidemarktest.At(noon.Add(66*time.Second))) // the watermark passes 12:01
	d.Commit()
	visits.Send("/", "carol", tidemarktest.At(noon.Add(30*time.Second))) // late, but not too late
	d.Commit()
	for _, r := range counts.ReadAll() {
		fmt.Println(r.Key, r.Value, r.Pane.Timing, r.Pane.Index)
	}
	// Output:
	// / 2 EARLY 0
	// / 2 ON_TIME 1
	// / 3 LATE 2
}

func ExampleDriver_Crash() {
	d := tidemarktest.New(nil, perMinute(), tidemarktest.Options{Instances: 2})
	visits := tidemarktest.Input[string, string](d, "visits")
	visits.Send("/", "alice")
	d.Commit()
	visits.Send("/", "bob")
	d.RestoreBy(tidemarktest.Changelog)
	d.Crash(0) // bob's visit was not committed: it is processed again
	d.Commit()
	n, _ := tidemarktest.Store[string, int64](d, "per-minute").Window("/", d.Now())
	fmt.Println(n)
	// Output:
	// 2
}

func ExampleDriver_Late() {
	noon := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	d := tidemarktest.New(nil, perMinute(), tidemarktest.Options{})
	visits := tidemarktest.Input[string, string](d, "visits")
	visits.Send("/", "alice", tidemarktest.At(noon.Add(time.Hour)))
	visits.Send("/", "bob", tidemarktest.At(noon))
	d.Commit()
	for _, l := range d.Late() {
		fmt.Printf("%s %s: %v at %s\n", l.Key, l.Value, l.Reason, l.Operator)
	}
	// Output:
	// / bob: expired at per-minute
}

func ExampleStore() {
	t := topology.New("example")
	t.Stream[string, int64]("amounts").Sum("totals", func(v int64) int64 { return v })
	d := tidemarktest.New(nil, t, tidemarktest.Options{Partitions: 4})
	in := tidemarktest.Input[string, int64](d, "amounts")
	in.Send("b", 3)
	in.Send("a", 1)
	in.Send("b", 4)
	d.Commit()
	for _, r := range tidemarktest.Store[string, int64](d, "totals").Rows() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// a 1
	// b 7
}

package main

import (
	"context"
	"flag"
	"io"
	"sync/atomic"
	"time"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/bench/nexmark"
)

// nexmarkApp runs one query of the suite until ctx ends: the process that is measured. It does what an ordinary service
// would do, and says four times a second how many events it has processed.
func nexmarkApp(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("bench nexmark-app", flag.ContinueOnError)
	bootstrap := f.String("bootstrap", "127.0.0.1:9092", "broker address")
	group := f.String("group", "bench-nexmark", "application id")
	state := f.String("state", "", "state directory; empty keeps state in memory")
	name := f.String("q", "q0", "query")
	commitMs := f.Int("commit-ms", 100, "commit interval")
	profile := f.String("cpuprofile", "", "write a CPU profile to this file")
	if err := f.Parse(args); err != nil {
		return err
	}
	q, err := nexmark.Find(*name)
	if err != nil {
		return err
	}
	var events atomic.Int64 // the app's own count of processed records holds those of repartition topics, too
	app, err := tidemark.New(q.Topology(*group, func(nexmark.Event) { events.Add(1) }), tidemark.Config{
		Brokers: []string{*bootstrap}, StateDir: *state, CommitInterval: time.Duration(*commitMs) * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return system.Serve(ctx, app, events.Load, *profile, out)
}

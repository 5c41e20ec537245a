// Package system runs a workload on Tidemark in a process of its own, to be measured from outside. It must do nothing
// that an ordinary service would not do. Its goroutines are the app's and one that prints progress.
package system

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/bench/internal/plain"
	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/serve"
)

type options struct {
	bootstrap, group, state   string
	workload, profile         string
	cache                     int64
	commitMs, workers         int
	guarantee, instance       string
	uncommitted               int64
	pause                     pause
	endDelay                  time.Duration
	verbose, events           bool
	cpuProfile, memoryProfile string
	snapshots                 snapshots
	serve, plain, plainPeer   string
}

// Main parses the arguments of a measured system and runs until ctx ends.
func Main(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("system", flag.ExitOnError)
	f.StringVar(&o.bootstrap, "bootstrap", "127.0.0.1:9092", "broker address")
	f.StringVar(&o.group, "group", "bench", "application id")
	f.StringVar(&o.state, "state", "", "state directory; empty keeps state in memory")
	f.StringVar(&o.workload, "w", "W1", "workload: W1, W2, W2Z, W3, W5, W6, W10, H10, H600, STATE or WINDOWS")
	f.StringVar(&o.profile, "p", "P3", "P1: at-least-once, 30 s commits; P2: at-least-once, 1 s; P3: exactly-once, 100 ms")
	f.Int64Var(&o.cache, "cache", 0, "bytes of memory for state, 0 for the default")
	f.IntVar(&o.commitMs, "commit-ms", 0, "commit interval, 0 for the profile's")
	f.StringVar(&o.guarantee, "guarantee", "", "exactly-once or at-least-once; empty for the profile's")
	f.IntVar(&o.workers, "workers", 0, "worker goroutines, 0 for the default")
	f.StringVar(&o.instance, "static", "", "instance id of a static member; empty for dynamic membership")
	f.Int64Var(&o.uncommitted, "uncommitted", 0, "bytes of uncommitted changes of one worker at which it commits early, 0 for the default")
	f.Int64Var(&o.pause.at, "pause-at", 0, "after so many records the user's function blocks; 0: never")
	f.DurationVar(&o.pause.last, "pause-for", time.Minute, "how long it blocks")
	f.DurationVar(&o.endDelay, "end-delay", 0, "delay of every request that ends a transaction")
	o.snapshots.flags(f)
	f.StringVar(&o.serve, "serve", "", "address at which it answers queries; empty: nowhere")
	f.StringVar(&o.plain, "plain", "", "address at which a plain gRPC service answers the same questions, see package plain; empty: nowhere")
	f.StringVar(&o.plainPeer, "plain-peer", "", "the same of the other instance")
	f.BoolVar(&o.events, "events", false, "print events of the instance, see Event")
	f.BoolVar(&o.verbose, "v", false, "log to standard error and print the phases of the start")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this file")
	f.StringVar(&o.memoryProfile, "memprofile", "", "write a heap profile to this file at the end")
	if err := f.Parse(args); err != nil {
		return err
	}
	return o.run(ctx, out)
}

func (o *options) config(out io.Writer) (tidemark.Config, error) {
	c := tidemark.Config{
		App: o.group, Brokers: []string{o.bootstrap}, StateDir: o.state, CacheBytes: o.cache,
		Workers: o.workers, InstanceID: o.instance, MaxUncommittedBytes: o.uncommitted, Endpoint: o.serve,
	}
	if o.endDelay > 0 {
		c.Kafka.Opts = append(c.Kafka.Opts, kgo.Dialer(slowEnds(o.endDelay)))
	}
	if o.events {
		c.Events = printEvents(out)
	}
	if err := o.snapshots.configure(&c, out); err != nil {
		return c, err
	}
	switch o.profile {
	case "P1":
		c.Guarantee, c.CommitInterval = tidemark.AtLeastOnce, 30*time.Second
	case "P2":
		c.Guarantee, c.CommitInterval = tidemark.AtLeastOnce, time.Second
	case "P3":
		c.Guarantee, c.CommitInterval = tidemark.ExactlyOnce, 100*time.Millisecond
	default:
		return c, fmt.Errorf("no profile %q", o.profile)
	}
	if o.commitMs > 0 {
		c.CommitInterval = time.Duration(o.commitMs) * time.Millisecond
	}
	switch o.guarantee {
	case "":
	case "exactly-once":
		c.Guarantee = tidemark.ExactlyOnce
	case "at-least-once":
		c.Guarantee = tidemark.AtLeastOnce
	default:
		return c, fmt.Errorf("no guarantee %q", o.guarantee)
	}
	if o.verbose {
		l, err := zap.NewDevelopment()
		if err != nil {
			return c, err
		}
		c.Logger = l
		first := make(chan struct{}, 1)
		c.Events.Phase = func(p tidemark.PhaseInfo) { fmt.Fprintln(out, "phase", p.At.UnixMicro(), p.Phase) }
		c.Events.Commit = func(tidemark.CommitInfo) {
			select {
			case first <- struct{}{}:
				fmt.Fprintln(out, "phase", time.Now().UnixMicro(), "first commit")
			default:
			}
		}
	}
	return c, nil
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	s, err := workload.Find(o.workload)
	if err != nil {
		return err
	}
	cfg, err := o.config(out)
	if err != nil {
		return err
	}
	var p *pause
	if o.pause.at > 0 {
		p = &o.pause
	}
	t, count := build(o.group, s, p)
	app, err := tidemark.New(t, cfg)
	if err != nil {
		return err
	}
	processed := app.Processed
	if count != nil {
		processed = count.Load
	}
	if o.serve != "" {
		answers, err := serve.New(app, serve.Config{})
		if err != nil {
			return err
		}
		defer beside(ctx, func(ctx context.Context) error { return answers.ListenAndServe(ctx, o.serve) })()
	}
	if o.plain != "" {
		defer beside(ctx, func(ctx context.Context) error { return plain.Serve(ctx, o.plain, o.plainPeer) })()
	}
	err = Serve(ctx, app, processed, o.cpuProfile, out)
	o.snapshots.print(out)
	if err != nil || o.memoryProfile == "" {
		return err
	}
	return writeHeap(o.memoryProfile)
}

// beside runs a server until stop is called, which waits for it.
func beside(ctx context.Context, serve func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serve(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "system:", err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Serve runs an app until ctx ends, says on out four times a second how many records it has processed, and writes a profile of
// its CPU to a file, if that has a name.
func Serve(ctx context.Context, app *tidemark.App, processed func() int64, cpuProfile string, out io.Writer) error {
	if cpuProfile != "" {
		f, err := os.Create(cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			fmt.Fprintln(out, "progress", processed())
		}
	}
}

func writeHeap(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	runtime.GC()
	return pprof.WriteHeapProfile(f)
}

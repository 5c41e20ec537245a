package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog/objects"
)

// options are the flags.
type options struct {
	brokers string
	dir     string
	rate    int
	runFor  time.Duration
	every   time.Duration
	early   time.Duration
	check   bool
	log     bool
	shape   bool
	serve   string

	snapshots     string
	snapshotEvery time.Duration
}

// stateDir is where an instance keeps its state.
func (o *options) stateDir(instance string) string { return filepath.Join(o.dir, instance) }

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "addresses of a Kafka cluster; default: a broker inside the program")
	flag.StringVar(&o.dir, "dir", defaultDir(), "directory for state, and for the broker inside the program")
	flag.IntVar(&o.rate, "rate", 2000, "events a second")
	flag.DurationVar(&o.runFor, "for", 0, "end after this time; default: at Ctrl-C")
	flag.DurationVar(&o.every, "every", time.Second, "time between two tables")
	flag.DurationVar(&o.early, "early", 10*time.Second, "time between two panes of a minute that is not over")
	flag.BoolVar(&o.check, "check", false, "at the end, count the whole input again and compare")
	flag.BoolVar(&o.log, "log", false, "write the log of the instances to standard error")
	flag.BoolVar(&o.shape, "shape", false, "print what the app's state depends on, for the command tidemark check, and end")
	flag.StringVar(&o.serve, "serve", "127.0.0.1:7070", "where the first instance answers queries, the second one port further; empty: nowhere")
	flag.StringVar(&o.snapshots, "snapshots", "", "directory for snapshots of the state; default: none are made")
	flag.DurationVar(&o.snapshotEvery, "snapshot-every", 10*time.Second, "with -snapshots: time between two snapshots of a task")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := run
	if o.shape {
		do = printShape
	}
	if err := do(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(1)
	}
}

func defaultDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "tidemark-campaign-minutes")
}

// printShape writes the shape of the topology as JSON.
func printShape(_ context.Context, o options, out *os.File) error {
	plan, err := campaignMetrics(o.early).Build()
	if err != nil {
		return err
	}
	return plan.Shape().WriteJSON(out)
}

func run(ctx context.Context, o options, out *os.File) error {
	addrs := strings.Split(o.brokers, ",")
	if o.brokers == "" {
		var stop func()
		var err error
		if addrs, stop, err = startBroker(o.dir); err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(out, "broker inside the program on %s, everything is kept in %s\n", strings.Join(addrs, ","), o.dir)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := makeTopics(ctx, cl); err != nil {
		return err
	}
	fmt.Fprintf(out, "watch elsewhere: kcat -b %s -C -t %s -X isolation.level=read_committed\n", addrs[0], minutesTopic)

	// Producer, instances and table end in this order, so that the last table shows every event.
	producing, stopProducing := context.WithCancel(ctx)
	defer stopProducing()
	rest, stopRest := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer func() {
		stopRest(nil)
		wg.Wait()
	}()
	start := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(rest); err != nil && rest.Err() == nil {
				stopRest(err)
				stopProducing()
			}
		})
	}
	logger := zap.NewNop()
	if o.log {
		if logger, err = zap.NewDevelopment(); err != nil {
			return err
		}
	}
	common := setup{options: o, addrs: addrs, logger: logger}
	if o.snapshots != "" {
		if common.bucket, err = objects.NewDir(o.snapshots); err != nil {
			return err
		}
		fmt.Fprintf(out, "snapshots every %s in %s; to restore from them, stop, and start again after: rm -r %s %s\n",
			o.snapshotEvery, o.snapshots, o.stateDir("a"), o.stateDir("b"))
	}
	var apps []*instance
	for _, name := range []string{"a", "b"} {
		l, err := listen(o.serve, len(apps))
		if err != nil {
			return err
		}
		i, err := newInstance(name, common, l)
		if err != nil {
			return err
		}
		apps = append(apps, i)
		start(i.run)
		if l != nil {
			start(i.answer)
		}
	}
	if at := apps[0].endpoint(); at != "" {
		fmt.Fprintf(out, "ask: curl -s %s/v1/stores/campaign-totals/keys/spring-sale\n\n", at)
	}
	b := newBoard()
	start(func(ctx context.Context) error { return b.follow(ctx, addrs) })

	var sent atomic.Int64
	produced := make(chan error, 1)
	wg.Go(func() { produced <- produce(producing, cl, o.rate, &sent) })
	var end <-chan time.Time
	if o.runFor > 0 {
		end = time.After(o.runFor)
	}
	s, begin, last := newScreen(out), time.Now(), int64(0)
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	show := func() {
		n := sent.Load()
		totals, lines := b.take()
		for _, a := range apps {
			lines = append(lines, a.take()...)
		}
		s.draw(picture{lines: lines, totals: totals, sent: n, rate: float64(n-last) / o.every.Seconds(), apps: apps, age: time.Since(begin)})
		last = n
	}
loop:
	for {
		select {
		case <-tick.C:
			show()
		case <-end:
			break loop
		case <-producing.Done():
			break loop
		}
	}
	stopProducing()
	if err := <-produced; err != nil {
		return err
	}
	if err := context.Cause(rest); err != nil {
		return err
	}
	if o.check {
		return check(rest, addrs, b, o.every, show, out)
	}
	show()
	fmt.Fprintln(out, "\nstopped; start again to go on with these totals")
	return nil
}

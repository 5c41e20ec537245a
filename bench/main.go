// Command bench measures Tidemark against the least a Go program on the same Kafka client can do, on the same input and
// broker in one go, checks what both have written, and prints a table and one JSON line per run.
//
//	go run ./bench -w W1,W2,W2Z
//	go run ./bench -w W2 -runs 3 -brokers localhost:9092 -out results.jsonl
//	go run ./bench compare   Tidemark against itself: guarantees and commit intervals
//	go run ./bench restart   time from kill -9 and restart to the first new result
//	go run ./bench restore   restore from the changelogs, against a bare loop
//	go run ./bench snapshots restores from snapshots in an object store, against changelogs and disk; what they cost
//	go run ./bench queries   latency of queries while W2 runs at half its maximum, and what they cost it
//	go run ./bench memory    peak memory of writing, standing still and restoring
//	go run ./bench units     single mechanisms of one task, without a broker
//	go run ./bench nexmark   queries of the Nexmark suite: go run ./bench nexmark -q q0,q5 -n 1000000
//
// Without -brokers it starts a real broker on loopback, which needs Java 17 and, for the first start, Maven. On another
// broker it deletes and creates topics named w1.in, w1.out and so on, nexmark.events, nexmark.q0 and so on, and topics and
// groups that begin with "bench-".
package main

import (
	"context"
	"encoding/json/v2"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/bench/internal/bare"
	"github.com/tidemark/tidemark/bench/internal/ceiling"
	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/bench/internal/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// dispatch runs the program itself or, in a child process, one of the systems it measures.
func dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "system":
			return system.Main(ctx, args[1:], os.Stdout)
		case "ceiling":
			return ceiling.Main(ctx, args[1:], os.Stdout)
		case "bare":
			return bare.Main(ctx, args[1:], os.Stdout)
		case "restart":
			return restart(ctx, args[1:])
		case "restore":
			return restore(ctx, args[1:])
		case "snapshots":
			return snapshots(ctx, args[1:])
		case "memory":
			return memory(ctx, args[1:])
		case "compare":
			return compare(ctx, args[1:])
		case "units":
			return units(ctx, args[1:])
		case "queries":
			return queries(ctx, args[1:])
		case "nexmark":
			return runNexmark(ctx, args[1:])
		case "nexmark-app":
			return nexmarkApp(ctx, args[1:], os.Stdout)
		}
	}
	return throughput(ctx, args)
}

type options struct {
	brokers   string
	workloads string
	systems   string
	records   int
	seed      uint64
	runs      int
	warm      float64
	commitMs  int
	out       string
	work      string
	timeout   time.Duration
	profiles  string
}

func parse(args []string) (options, error) {
	var o options
	f := o.common("bench")
	f.StringVar(&o.workloads, "w", "W1,W2,W2Z", "workloads, separated by commas: W1, W2, W2Z, W6, H10, H600")
	f.StringVar(&o.systems, "systems", "ceiling,tidemark", "what to measure, in this order")
	f.IntVar(&o.runs, "runs", 1, "runs of each system, in turn")
	f.IntVar(&o.commitMs, "commit-ms", 100, "commit interval of both systems")
	return o, f.Parse(args)
}

// common returns the flags of every kind of run.
func (o *options) common(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.StringVar(&o.brokers, "brokers", "", "address of a Kafka broker on this machine; default: start one")
	f.IntVar(&o.records, "n", 0, "records of the input, 0 for the workload's default")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the input")
	f.Float64Var(&o.warm, "warm", 0.4, "share of the input that counts as warm-up")
	f.StringVar(&o.out, "out", "", "append the JSON lines to this file")
	f.StringVar(&o.work, "work", "", "directory for broker and state; default: a temporary one that is removed")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "limit of one run")
	f.StringVar(&o.profiles, "profiles", "", "write CPU profiles of Tidemark into this directory")
	return f
}

// throughput runs every system on every workload.
func throughput(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	var results []result
	for name := range strings.SplitSeq(o.workloads, ",") {
		s, err := workload.Find(name)
		if err != nil {
			return err
		}
		n := o.records
		if n == 0 {
			n = s.N
		}
		fmt.Fprintf(os.Stderr, "%s: loading %d records\n", s.Name, n)
		if err := b.load(ctx, s, n); err != nil {
			return err
		}
		for range o.runs {
			for sys := range strings.SplitSeq(o.systems, ",") {
				if (s.Name == "W6" || s.Windows() > 0) && sys == "ceiling" {
					continue
				}
				fmt.Fprintf(os.Stderr, "%s: %s\n", s.Name, sys)
				r, err := b.measure(ctx, sys, s, n, variant{commitMs: o.commitMs})
				if err != nil {
					return fmt.Errorf("%s on %s: %w", sys, s.Name, err)
				}
				results = append(results, *r)
				if err := emit(r, o.out); err != nil {
					return err
				}
			}
		}
	}
	printTable(os.Stdout, results)
	return nil
}

// emit prints the JSON line of a run and appends it to the file.
func emit(r any, path string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\n", line); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/bench/nexmark"
)

// nexmarkResult is one run of one query. Events are those of all kinds, though queries use bids only. CPU is of the
// measured process, user and system: whole is from its start until everything is committed, steady begins after the
// warm-up.
type nexmarkResult struct {
	Query         string    `json:"query"`
	Events        int       `json:"events"`
	Rows          int64     `json:"rows"` // of the output
	CommitMs      int       `json:"commit_ms"`
	Delayed       float64   `json:"delayed"` // share of the events that come out of order
	Start         time.Time `json:"start"`
	WallS         float64   `json:"wall_s"`
	Rate          float64   `json:"events_per_s"` // steady
	PerCore       float64   `json:"events_per_cpu_s"`
	SteadyPerCore float64   `json:"steady_events_per_cpu_s"`
	BrokerCPU     float64   `json:"broker_cpu_s_per_m"` // 0 with -brokers
	RSS           float64   `json:"peak_rss_mb"`
	OwnLog        int64     `json:"own_log_bytes"` // changelogs, repartition topics, progress
	ForeignCPU    float64   `json:"foreign_cores"`
	Check         string    `json:"check"` // ok, or what is wrong
}

// runNexmark runs queries of the suite one after the other on the same input and compares their output with the evaluators.
func runNexmark(ctx context.Context, args []string) error {
	var o options
	f := o.common("bench nexmark")
	queries := f.String("q", "q0,q1,q2,q5,q7,q11,q12,q14,q22", "queries, separated by commas")
	f.IntVar(&o.runs, "runs", 1, "runs of each query, in turn")
	f.IntVar(&o.commitMs, "commit-ms", 100, "commit interval")
	every := f.Duration("every", 100*time.Microsecond, "event time between two events")
	delayed := f.Float64("delayed", 0.1, "share of the events that come later than younger ones")
	maxDelay := f.Duration("max-delay", nexmark.MaxDelay, "how much later, at most, in event time; the default is the limit")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.records == 0 {
		o.records = 1_000_000
	}
	var list []nexmark.Query
	for name := range strings.SplitSeq(*queries, ",") {
		q, err := nexmark.Find(name)
		if err != nil {
			return err
		}
		list = append(list, q)
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	in := nexmark.Options{Events: o.records, Seed: o.seed, Every: *every, Delayed: *delayed, MaxDelay: *maxDelay}
	fmt.Fprintf(os.Stderr, "nexmark: loading %d events\n", in.Events)
	if err := b.recreate(ctx, nexmark.Input); err != nil {
		return err
	}
	records, err := nexmark.Load(ctx, workload.Partitions, nexmark.Generate(in), nexmark.End(in), kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	results := map[string][]nexmarkResult{}
	for range o.runs {
		for _, q := range list {
			fmt.Fprintf(os.Stderr, "%s: %s\n", q.Name, q.What)
			r, err := b.measureQuery(ctx, q, in, records)
			if err != nil {
				return fmt.Errorf("%s: %w", q.Name, err)
			}
			results[q.Name] = append(results[q.Name], *r)
			if err := emit(r, o.out); err != nil {
				return err
			}
		}
	}
	printNexmark(list, results)
	return nil
}

// measureQuery runs one query over the loaded input, which has so many records.
func (b *bench) measureQuery(ctx context.Context, q nexmark.Query, in nexmark.Options, records int64) (*nexmarkResult, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	const group = "bench-nexmark"
	state := filepath.Join(b.work, "state")
	if err := b.reset(ctx, group, q.Output()); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(state); err != nil {
		return nil, err
	}
	args := []string{"nexmark-app", "-bootstrap", b.addr, "-group", group, "-state", state, "-q", q.Name, "-commit-ms", strconv.Itoa(b.commitMs)}
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "-cpuprofile", filepath.Join(b.profiles, q.Name+".cpu.prof"))
	}
	r := &nexmarkResult{Query: q.Name, Events: in.Events, CommitMs: b.commitMs, Delayed: in.Delayed, Start: time.Now().UTC().Truncate(time.Second)}
	c, err := start(ctx, args, nil)
	if err != nil {
		return nil, err
	}
	pid := c.cmd.Process.Pid
	samples := []sample{b.sample(pid, 0)}
	for at := samples[0]; at.records < records; {
		n, ok := <-c.progress
		if !ok {
			return nil, errors.Join(errors.New("it ended before its input"), c.cmd.Wait())
		}
		at = b.sample(pid, n)
		samples = append(samples, at)
	}
	if err := b.finishQuery(ctx, q, group); err != nil {
		return nil, errors.Join(err, c.stop(syscall.SIGKILL))
	}
	first, read, last := samples[0], samples[len(samples)-1], b.sample(pid, records)
	warm := at(samples, int64(b.warm*float64(records)))
	r.WallS = last.at.Sub(first.at).Seconds()
	r.Rate = float64(read.records-warm.records) / read.at.Sub(warm.at).Seconds()
	r.PerCore = float64(records) / (last.app - first.app)
	r.SteadyPerCore = float64(records-warm.records) / (last.app - warm.app)
	r.BrokerCPU = (last.broker - first.broker) / (float64(records) / 1e6)
	r.ForeignCPU = (last.other - first.other) / r.WallS
	r.RSS = peakRSS(pid)
	if _, r.OwnLog, err = b.logBytes(ctx, group, q.Output()); err != nil {
		return nil, errors.Join(err, c.stop(syscall.SIGKILL))
	}
	if err := c.stop(syscall.SIGTERM); err != nil {
		return nil, fmt.Errorf("it did not end cleanly: %w", err)
	}
	r.Check = "ok"
	if r.Rows, err = b.verifyQuery(ctx, q, in); err != nil {
		r.Check = err.Error()
	}
	return r, nil
}

// finishQuery waits until all results are there.
func (b *bench) finishQuery(ctx context.Context, q nexmark.Query, group string) error {
	if q.ByClock {
		// The last period may have been going on for just a moment.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(11 * time.Second):
		}
	}
	return b.waitDrained(ctx, group, nexmark.Input, q.Output(), b.commitMs)
}

// verifyQuery compares the output of a query with that of its evaluator and returns how many rows it has.
func (b *bench) verifyQuery(ctx context.Context, q nexmark.Query, in nexmark.Options) (rows int64, err error) {
	read := func(fn func(nexmark.Row)) error { return nexmark.Read(ctx, q.Output(), fn, kgo.SeedBrokers(b.addr)) }
	if q.ByClock {
		p := nexmark.NewPeriods(nexmark.Generate(in))
		if err := read(func(r nexmark.Row) { rows++; p.Add(r) }); err != nil {
			return rows, err
		}
		return rows, p.Finish()
	}
	seed := maphash.MakeSeed()
	var got, want nexmark.Digest
	if err := read(func(r nexmark.Row) { got.Add(seed, r) }); err != nil {
		return got.Rows, err
	}
	q.Evaluate(nexmark.AtOnce(nexmark.Generate(in)), func(r nexmark.Row) { want.Add(seed, r) })
	switch {
	case got.Rows != want.Rows:
		return got.Rows, fmt.Errorf("%d rows, the evaluator has %d", got.Rows, want.Rows)
	case got != want:
		return got.Rows, errors.New("some rows are not those of the evaluator")
	}
	return got.Rows, nil
}

// printNexmark prints the medians of the runs of each query.
func printNexmark(list []nexmark.Query, results map[string][]nexmarkResult) {
	fmt.Println("\n| query | what | runs | k events/s | k events per CPU-s, whole | steady | wall s | broker CPU-s/M | peak RSS MB | rows | own log MB | foreign cores | check |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, q := range list {
		runs := results[q.Name]
		middle := func(f func(nexmarkResult) float64) float64 {
			var v []float64
			for _, r := range runs {
				v = append(v, f(r))
			}
			return median(v)
		}
		verdict := "ok"
		for _, r := range runs {
			if r.Check != "ok" {
				verdict = r.Check
			}
		}
		fmt.Printf("| %s | %s | %d | %.0f | %.0f | %.0f | %.0f | %.2f | %.0f | %.0f | %.0f | %.2f | %s |\n", q.Name, q.What, len(runs),
			middle(func(r nexmarkResult) float64 { return r.Rate / 1e3 }),
			middle(func(r nexmarkResult) float64 { return r.PerCore / 1e3 }),
			middle(func(r nexmarkResult) float64 { return r.SteadyPerCore / 1e3 }),
			middle(func(r nexmarkResult) float64 { return r.WallS }),
			middle(func(r nexmarkResult) float64 { return r.BrokerCPU }),
			middle(func(r nexmarkResult) float64 { return r.RSS }),
			middle(func(r nexmarkResult) float64 { return float64(r.Rows) }),
			middle(func(r nexmarkResult) float64 { return float64(r.OwnLog) / 1e6 }),
			middle(func(r nexmarkResult) float64 { return r.ForeignCPU }), verdict)
	}
}

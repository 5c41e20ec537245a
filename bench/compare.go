package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// compare measures Tidemark against itself on W1: what exactly-once costs, and what short commit intervals cost, the
// second also when ending a transaction takes long. The process has one core where the machine can see to that.
func compare(ctx context.Context, args []string) error {
	var o options
	f := o.common("bench compare")
	f.IntVar(&o.runs, "runs", 1, "runs of each variant, in turn")
	var delay time.Duration
	f.DurationVar(&delay, "end-delay", 30*time.Millisecond, "delay added to every end of a transaction in the last two variants")
	if err := f.Parse(args); err != nil {
		return err
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	s, err := workload.Find("W1")
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
	const eos, alos = "exactly-once", "at-least-once"
	variants := []variant{
		{commitMs: 100, guarantee: alos}, {commitMs: 100, guarantee: eos}, {commitMs: 1000, guarantee: eos},
		{commitMs: 100, guarantee: eos, endDelay: delay}, {commitMs: 1000, guarantee: eos, endDelay: delay},
	}
	results := make([][]result, len(variants))
	for range o.runs {
		for i, v := range variants {
			v.pinned = true
			fmt.Fprintf(os.Stderr, "%s, commits every %d ms, end of transactions delayed by %v\n", v.guarantee, v.commitMs, v.endDelay)
			r, err := b.measure(ctx, "tidemark", s, n, v)
			if err != nil {
				return fmt.Errorf("%s, %d ms: %w", v.guarantee, v.commitMs, err)
			}
			results[i] = append(results[i], *r)
			if err := emit(r, o.out); err != nil {
				return err
			}
		}
	}
	fmt.Println("\n| guarantee | commit ms | end delay ms | pinned | CPU-s/M whole | CPU-s/M steady | k rec/s | peak RSS MB | foreign cores | check |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	middle := func(i int, f func(result) float64) float64 {
		var v []float64
		for _, r := range results[i] {
			v = append(v, f(r))
		}
		return median(v)
	}
	rate := func(i int) float64 { return middle(i, func(r result) float64 { return r.Rate / 1e3 }) }
	cpu := func(i int) float64 { return middle(i, func(r result) float64 { return r.CPU }) }
	steady := func(i int) float64 { return middle(i, func(r result) float64 { return r.SteadyCPU }) }
	for i, v := range variants {
		verdict := "ok"
		for _, r := range results[i] {
			if r.Check != "ok" {
				verdict = r.Check
			}
		}
		fmt.Printf("| %s | %d | %d | %v | %.3f | %.3f | %.0f | %.0f | %.2f | %s |\n", v.guarantee, v.commitMs, v.endDelay.Milliseconds(),
			results[i][0].Pinned, cpu(i), steady(i), rate(i), middle(i, func(r result) float64 { return r.RSS }),
			middle(i, func(r result) float64 { return r.ForeignCPU }), verdict)
	}
	fmt.Printf("\nexactly-once costs %+.1f %% of CPU whole, %+.1f %% steady\n", 100*(cpu(1)/cpu(0)-1), 100*(steady(1)/steady(0)-1))
	fmt.Printf("records/s at 100 ms of those at 1 s: %.2f; ends delayed by %v: %.2f\n", rate(1)/rate(2), delay, rate(3)/rate(4))
	return nil
}

// pin returns the command that gives a process one core, or nil where there is none.
func pin() []string {
	path, err := exec.LookPath("taskset")
	if err != nil {
		return nil
	}
	return []string{path, "-c", "0"}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

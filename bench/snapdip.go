package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/bench/internal/workload"
)

// dipResult is one run of W2, with what it has uploaded and how much of that is new table files.
type dipResult struct {
	result
	Kind      string        `json:"kind"`
	Snapshots bool          `json:"snapshots"`
	Stored    system.Stored `json:"stored"`
}

// dip measures what snapshots cost: W2 with one every 10 s and without, in turn.
func (b *bench) dip(ctx context.Context, o snapshotOptions) error {
	s, err := workload.Find("W2")
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
	var with, without []dipResult
	for range o.runs {
		for _, on := range []bool{false, true} {
			fmt.Fprintf(os.Stderr, "%s: snapshots %v\n", s.Name, on)
			r, err := b.dipRun(ctx, o, s, n, on)
			if err != nil {
				return err
			}
			if err := emit(r, o.out); err != nil {
				return err
			}
			if on {
				with = append(with, *r)
			} else {
				without = append(without, *r)
			}
		}
	}
	middle := func(rs []dipResult, f func(dipResult) float64) float64 {
		v := make([]float64, len(rs))
		for i, r := range rs {
			v[i] = f(r)
		}
		return median(v)
	}
	rate, steady := func(r dipResult) float64 { return r.Rate }, func(r dipResult) float64 { return r.SteadyCPU }
	cpu := func(r dipResult) float64 { return r.CPU }
	fmt.Println("\n| W2 | runs | k rec/s | CPU-s/M whole | CPU-s/M steady | peak RSS MB | uploaded MB | new files MB | ratio | foreign cores | check |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	for i, rs := range [][]dipResult{without, with} {
		verdict := "ok"
		for _, r := range rs {
			if r.Check != "ok" {
				verdict = r.Check
			}
		}
		put := middle(rs, func(r dipResult) float64 { return float64(r.Stored.PutBytes) / 1e6 })
		files := middle(rs, func(r dipResult) float64 { return float64(r.Stored.TableBytes) / 1e6 })
		ratio := ""
		if files > 0 {
			ratio = fmt.Sprintf("%.3f", put/files)
		}
		fmt.Printf("| %s | %d | %.0f | %.2f | %.2f | %.0f | %.1f | %.1f | %s | %.2f | %s |\n", []string{"without", "snapshots"}[i], len(rs),
			middle(rs, rate)/1e3, middle(rs, cpu), middle(rs, steady), middle(rs, func(r dipResult) float64 { return r.RSS }),
			put, files, ratio, middle(rs, func(r dipResult) float64 { return r.ForeignCPU }), verdict)
	}
	fmt.Printf("\nsnapshots: %.3f of the records per second, %.3f of the CPU per record whole, %.3f steady\n",
		middle(with, rate)/middle(without, rate), middle(with, cpu)/middle(without, cpu), middle(with, steady)/middle(without, steady))
	return nil
}

func (b *bench) dipRun(ctx context.Context, o snapshotOptions, s workload.Spec, n int, on bool) (*dipResult, error) {
	v := variant{commitMs: 100}
	if on {
		name, done, err := b.bucket(ctx, o.store)
		if err != nil {
			return nil, err
		}
		defer done()
		v.more = []string{"-snapshots", name, "-snapshot-interval", (10 * time.Second).String(), "-snapshot-delay", o.delay.String()}
	}
	var stored []system.Stored
	v.ended = func(c *child) { stored = c.stored }
	r, err := b.measure(ctx, "tidemark", s, n, v)
	if err != nil {
		return nil, err
	}
	d := &dipResult{result: *r, Kind: "snapshots-dip", Snapshots: on}
	if len(stored) > 0 {
		d.Stored = stored[len(stored)-1]
	}
	return d, nil
}

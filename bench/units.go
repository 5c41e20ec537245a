package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidemark/tidemark/bench/internal/unit"
)

// units measures single mechanisms of one task, without a broker.
func units(_ context.Context, args []string) error {
	f := flag.NewFlagSet("units", flag.ContinueOnError)
	windows := f.Int("windows", 1_000_000, "windows that fire at one step of the watermark")
	overlay := f.Int64("overlay", 64<<20, "bytes that may be uncommitted meanwhile")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := hopping(os.Stdout); err != nil {
		return err
	}
	r, err := unit.RunFiring(*windows, *overlay)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d windows at one step of the watermark: %.2f s, %d transactions, at most %v between two commits, at most %.1f of %d MB uncommitted, %.2f µs CPU per window\n",
		r.Windows, r.Whole.Seconds(), r.Transactions, r.Longest.Round(time.Millisecond), float64(r.Most)/(1<<20), r.Overlay>>20, r.CPU)
	const records, bytes, perRecord = 2e6, 1000, 1.2
	c, err := unit.RunControl(8, 8, 64, records, bytes, perRecord)
	if err != nil {
		return err
	}
	fmt.Printf("\ncontrol records, 8 instances of 8 tasks, 64 partitions, %.0f records/s of %d B at %.1f µs each on either side: %d B, %.2f µs to encode, %.2f µs to take in; %.0f per second: %.4f %% of bytes, %.4f %% of CPU\n",
		records, int(bytes), perRecord, c.Bytes, c.Encode, c.Apply, c.PerSec, 100*c.ShareB, 100*c.ShareC)
	return nil
}

// hopping prints what hopping windows cost as they overlap more.
func hopping(w io.Writer) error {
	fmt.Fprintln(w, "count over hopping windows, 1,000 keys, hop 1 s, all panes sent:")
	fmt.Fprintln(w, "| records per key and hop | size / hop | kept by | records | panes | µs CPU per record | of size / hop 10 |\n|---|---|---|---|---|---|---|")
	for _, perHop := range []int{2, 5} {
		var base float64
		for _, c := range []struct {
			ratio  int
			sliced bool
		}{{10, true}, {60, true}, {600, true}, {10, false}} {
			h, err := unit.RunHopping(time.Duration(c.ratio)*time.Second, perHop, c.sliced)
			if err != nil {
				return err
			}
			if base == 0 {
				base = h.CPU
			}
			by := "slices"
			if !h.Sliced {
				by = "windows"
			}
			fmt.Fprintf(w, "| %d | %d | %s | %d | %d | %.2f | %.2f |\n", perHop, c.ratio, by, h.Records, h.Panes, h.CPU, h.CPU/base)
		}
	}
	return nil
}

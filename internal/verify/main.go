package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2]))
	}
	var (
		crash   = flag.Bool("crash", false, "run the crash matrix")
		only    = flag.String("only", "", "with -crash or -mutants: only cases whose name contains this; mutants are called commit/NAME, event-time/NAME, snapshots/NAME and queries/NAME")
		chaos   = flag.Bool("chaos", false, "run instances under random faults")
		minutes = flag.Float64("minutes", 5, "with -chaos: how long")
		fault   = flag.String("fault", "none", "with -chaos: faults of the broker: none, kill, pause or both")
		set     = flag.String("workload", setBank, "with -chaos: bank, event-time or both")
		rate    = flag.Int("rate", 5000, "with -chaos: inputs per second; of events one in 25")
		seed    = flag.Uint64("seed", 0, "with -chaos and -sim: first seed; 0 draws one for -chaos and is 1 for -sim")
		sim     = flag.Bool("sim", false, "run simulations")
		seeds   = flag.Int("seeds", 200, "with -sim: how many")
		plans   = flag.Bool("plans", false, "with -sim: print the plan of every seed")
		mutants = flag.Bool("mutants", false, "check that the checkers and tests notice edits of the code")
		keep    = flag.String("keep", "", "keep logs and state in this directory")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *crash:
		err = runCrash(ctx, *keep, *only)
	case *chaos:
		err = runChaos(ctx, chaosOptions{Minutes: *minutes, Fault: *fault, Set: *set, Rate: *rate, Seed: *seed, Keep: *keep})
	case *sim:
		err = runSim(ctx, max(*seed, 1), *seeds, *plans)
	case *mutants:
		err = runMutants(ctx, *only)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

package main

import "context"

type chaosOptions struct {
	Minutes float64
	Fault   string
	Rate    int
	Seed    uint64
	Keep    string
}

func runChaos(ctx context.Context, o chaosOptions) error    { return nil }
func runSim(ctx context.Context, first uint64, n int) error { return nil }
func runMutants(ctx context.Context, only string) error     { return nil }

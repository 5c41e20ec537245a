package main

import "context"

func runSim(ctx context.Context, first uint64, n int) error { return nil }
func runMutants(ctx context.Context, only string) error     { return nil }

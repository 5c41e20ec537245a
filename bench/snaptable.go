package main

import (
	"fmt"
	"io"
	"slices"
)

// printSnapshots prints medians, and of the time to the first record what the changelogs take of each.
func printSnapshots(w io.Writer, all []*snapshotResult) {
	fmt.Fprintln(w, "\n| state MB | way | runs | first record s | worst | all tasks run s | hydrated s | CPU-s to run | CPU-s hydrated | fetched MB to run | fetched MB | replayed MB | faster than the changelog: first, all run | updates ms p50, p99 hydrating | after | gets ms p50, p99 hydrating | after | peak RSS MB | foreign cores | check |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	var sizes []int64
	for _, r := range all {
		if !slices.Contains(sizes, r.Bytes) {
			sizes = append(sizes, r.Bytes)
		}
	}
	for _, size := range sizes {
		for _, way := range waysOf(all) {
			var rs []*snapshotResult
			verdict := "ok"
			for _, r := range all {
				if r.Bytes == size && r.Way == way {
					rs = append(rs, r)
					if r.Check != "ok" {
						verdict = r.Check
					}
				}
			}
			m := func(f func(*snapshotResult) float64) float64 { return middleOf(rs, f) }
			ratio := ""
			if base := pick(all, size, "changelog"); len(base) > 0 {
				first, run := func(r *snapshotResult) float64 { return r.First }, func(r *snapshotResult) float64 { return r.Running }
				ratio = fmt.Sprintf("%.1f, %.1f", middleOf(base, first)/m(first), middleOf(base, run)/m(run))
			}
			fmt.Fprintf(w, "| %d | %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f | %.0f | %.1f | %s | %.0f, %.0f | %.0f, %.0f | %.1f, %.1f | %.1f, %.1f | %.0f | %.2f | %s |\n",
				size/1e6, way, len(rs), m(func(r *snapshotResult) float64 { return r.First }),
				slices.MaxFunc(rs, func(a, b *snapshotResult) int { return int((a.First - b.First) * 1e6) }).First,
				m(func(r *snapshotResult) float64 { return r.Running }), m(func(r *snapshotResult) float64 { return r.Hydrated }),
				m(func(r *snapshotResult) float64 { return r.CPU }), m(func(r *snapshotResult) float64 { return r.AllCPU }),
				m(func(r *snapshotResult) float64 { return float64(r.Early) / 1e6 }), m(func(r *snapshotResult) float64 { return float64(r.Fetched) / 1e6 }),
				m(func(r *snapshotResult) float64 { return float64(r.Replayed) / 1e6 }), ratio,
				m(func(r *snapshotResult) float64 { return r.While.P50 }), m(func(r *snapshotResult) float64 { return r.While.P99 }),
				m(func(r *snapshotResult) float64 { return r.After.P50 }), m(func(r *snapshotResult) float64 { return r.After.P99 }),
				m(func(r *snapshotResult) float64 { return r.GetsWhile.P50 }), m(func(r *snapshotResult) float64 { return r.GetsWhile.P99 }),
				m(func(r *snapshotResult) float64 { return r.GetsAfter.P50 }), m(func(r *snapshotResult) float64 { return r.GetsAfter.P99 }),
				m(func(r *snapshotResult) float64 { return r.RSS }), m(func(r *snapshotResult) float64 { return r.Foreign }), verdict)
		}
	}
}

func pick(all []*snapshotResult, size int64, way string) (rs []*snapshotResult) {
	for _, r := range all {
		if r.Bytes == size && r.Way == way {
			rs = append(rs, r)
		}
	}
	return rs
}

func middleOf(rs []*snapshotResult, f func(*snapshotResult) float64) float64 {
	v := make([]float64, len(rs))
	for i, r := range rs {
		v[i] = f(r)
	}
	return median(v)
}

// waysOf returns the ways that were measured, in order.
func waysOf(rs []*snapshotResult) (ways []string) {
	for _, r := range rs {
		if !slices.Contains(ways, r.Way) {
			ways = append(ways, r.Way)
		}
	}
	return ways
}

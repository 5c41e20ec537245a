package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// memoryResult is the peak memory of one stage.
type memoryResult struct {
	Kind    string    `json:"kind"`
	Stage   string    `json:"stage"`
	Start   time.Time `json:"start"`
	Keys    int       `json:"keys"`
	RSS     float64   `json:"peak_rss_mb"`
	CacheMB int64     `json:"caches_mb"`
	LimitMB int64     `json:"gomemlimit_mb"`
	BoundMB int64     `json:"bound_mb"`
	WallS   float64   `json:"wall_s"`
}

// memory measures peak memory while the user's function stands still with a full input behind it, while keys are
// written, and while they are restored. What is configured: the memory for state, and for every worker twice the
// uncommitted changes at which it commits early.
func memory(ctx context.Context, args []string) error {
	var o options
	f := o.common("bench memory")
	keys := f.Int("keys", 10_000_000, "keys written")
	cache := f.Int64("cache", 256, "MB of memory for state")
	uncommitted := f.Int64("uncommitted", 16, "MB of uncommitted changes of a worker")
	pause := f.Duration("pause", time.Minute, "how long the function stands still")
	extra := f.Int64("extra", 200, "MB allowed beyond what is configured")
	if err := f.Parse(args); err != nil {
		return err
	}
	s, err := workload.Find("STATE")
	if err != nil {
		return err
	}
	s.Keys = uint64(*keys)
	workers := runtime.GOMAXPROCS(0)
	caches := *cache + 2*int64(workers)**uncommitted
	limit := caches + *extra/2
	if cgo() {
		limit -= *cache / 8 // the block cache is not on Go's heap
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, *pause+4*b.timeout)
	defer cancel()
	l := &launch{env: []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", limit)}, events: true}
	settings := []string{"-cache", strconv.FormatInt(*cache<<20, 10), "-uncommitted", strconv.FormatInt(*uncommitted<<20, 10),
		"-workers", strconv.Itoa(workers)}
	at := int64(*keys / 20)
	profile := slices.Clone(settings)
	if b.profiles != "" {
		profile = append(profile, "-cpuprofile", filepath.Join(b.profiles, "memory.prof"))
	}
	c, err := b.fill(ctx, s, *keys, l, append(profile, "-pause-at", strconv.FormatInt(at, 10), "-pause-for", pause.String())...)
	if err != nil {
		return err
	}
	var results []memoryResult
	stage := func(name string, began time.Time, rss float64) error {
		r := memoryResult{"memory", name, began.UTC().Truncate(time.Second), *keys, rss, caches, limit, caches + *extra, time.Since(began).Seconds()}
		results = append(results, r)
		return emit(r, b.out)
	}
	err = func() error {
		pid := c.cmd.Process.Pid
		began := time.Now()
		if err := c.reach(at - 1); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "standing still for %v\n", *pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(*pause):
		}
		if err := stage("standing still", began, peakRSS(pid)); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "writing")
		began = time.Now()
		if err := forgetPeak(pid); err != nil {
			return err
		}
		if err := c.reach(int64(*keys)); err != nil {
			return err
		}
		if err := b.waitDrained(ctx, stateGroup, s.Input(), s.Output(), 100); err != nil {
			return err
		}
		return stage("writing", began, peakRSS(pid))
	}()
	if err = errors.Join(err, c.stop(syscall.SIGTERM)); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "restoring")
	began := time.Now()
	if err := os.RemoveAll(b.stateDir()); err != nil {
		return err
	}
	var r restoreResult
	if err := b.oneRestore(ctx, b.stateArgs(settings...), l, &r); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := stage("restoring", began, r.RSS); err != nil {
		return err
	}
	fmt.Println("\n| stage | keys | caches MB | GOMEMLIMIT MB | peak RSS MB | bound MB | within | wall s |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, r := range results {
		fmt.Printf("| %s | %d | %d | %d | %.0f | %d | %v | %.0f |\n", r.Stage, r.Keys, r.CacheMB, r.LimitMB, r.RSS, r.BoundMB, r.RSS <= float64(r.BoundMB), r.WallS)
	}
	return nil
}

// cgo says whether this program was built with cgo. Pebble's block cache and memtables are then allocated by C, and
// GOMEMLIMIT does not cover them.
func cgo() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
}

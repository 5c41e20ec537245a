package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark/tidemark/bench/internal/workload"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// snapshotResult is one restore in a process of its own. Seconds are from the start of the process; CPU is its, up to the
// moment named. Latencies are those of updates, from when they were due to when a read_committed consumer has them: each
// reads its row. While is between the last task running and everything hydrated, After is behind both.
type snapshotResult struct {
	Kind     string    `json:"kind"`
	Way      string    `json:"way"`
	Store    string    `json:"store"`
	DelayMs  int64     `json:"delay_ms"`
	Bytes    int64     `json:"state_bytes"`
	Rows     uint64    `json:"rows"`
	Run      int       `json:"run"`
	Start    time.Time `json:"start"`
	Source   string    `json:"restored_from"`
	First    float64   `json:"first_record_s"`
	Running  float64   `json:"all_running_s"`
	Hydrated float64   `json:"hydrated_s"` // 0: it was never lazy
	CPU      float64   `json:"cpu_running_s"`
	AllCPU   float64   `json:"cpu_hydrated_s"`
	Replayed int64     `json:"replayed_bytes"`
	Early    int64     `json:"fetched_running_bytes"`
	Fetched  int64     `json:"fetched_bytes"`
	Gets     int64     `json:"gets"`
	RSS      float64   `json:"peak_rss_mb"`
	Foreign  float64   `json:"foreign_cores"`
	While    latencies `json:"updates_while_hydrating"`
	After    latencies `json:"updates_after"`
	// Of point gets, in the same two times.
	GetsWhile latency `json:"gets_while_hydrating"`
	GetsAfter latency `json:"gets_after"`
	Check     string  `json:"check"` // ok, or how the rows differ from those of the input
}

type latencies struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func (w *watcher) latencies(from, to time.Time) latencies {
	v := w.between(from, to)
	return latencies{len(v), quantile(v, 0.5), quantile(v, 0.99), quantile(v, 1)}
}

// restore measures one restore.
func (x *snapBench) restore(ctx context.Context, way string, run int) (*snapshotResult, error) {
	r := &snapshotResult{
		Kind: "snapshots", Way: way, Store: x.o.store, DelayMs: x.o.delay.Milliseconds(), Bytes: x.bytes, Rows: x.spec.Keys, Run: run,
		Start: time.Now().UTC().Truncate(time.Second),
	}
	dir := filepath.Join(x.work, "fresh")
	var more []string
	switch way {
	case "changelog":
	case "disk":
		dir = x.kept()
	case "snapshot":
		more = x.from("full")
	case "lazy":
		more = x.from("lazy")
	default:
		return nil, errors.New("no such way of restoring")
	}
	if way != "disk" {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	if x.profiles != "" {
		more = append(more, "-cpuprofile", filepath.Join(x.profiles, fmt.Sprintf("%s-%d-%d.prof", way, x.bytes/1e6, run)))
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	more = append(more, "-serve", addr)
	w, err := x.watch(ctx, x.spec)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var c *child
	err = x.updating(ctx, x.o.rate, func(ctx context.Context) error {
		began := time.Now()
		var err error
		if c, err = start(ctx, x.args(dir, more...), &launch{events: true}); err != nil {
			return err
		}
		return x.observe(ctx, c, w, r, dir, addr, began)
	})
	if c == nil {
		return nil, err
	}
	r.RSS = peakRSS(c.cmd.Process.Pid)
	if err == nil && x.o.windows {
		r.Check, err = x.checkServed(ctx, addr)
	}
	if err = errors.Join(err, x.settle(ctx, c, 0)); err != nil {
		return nil, err
	}
	if n := len(c.stored); n > 0 {
		r.Early, r.Fetched, r.Gets = c.stored[0].GetBytes, c.stored[n-1].GetBytes, c.stored[n-1].Gets
	}
	if !x.o.windows {
		r.Check, err = x.check(dir)
	}
	return r, err
}

// observe fills in what happens until the child has everything, and some time after.
func (x *snapBench) observe(ctx context.Context, c *child, w *watcher, r *snapshotResult, dir, addr string, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	pid := c.cmd.Process.Pid
	before := x.sample(pid, 0)
	if err := running(ctx, c, r); err != nil {
		return err
	}
	runs := time.Now()
	r.Running, r.CPU = runs.Sub(began).Seconds(), cpuOf(pid)
	whole := runs
	if r.Source == "lazy snapshot" {
		err := x.asking(ctx, addr, &r.GetsWhile, func() error { return hydrated(ctx, filepath.Join(dir, stateGroup)) })
		if err != nil {
			return err
		}
		whole = time.Now()
		r.Hydrated = whole.Sub(began).Seconds()
	}
	first, err := w.wait(ctx, x.timeout)
	if err != nil {
		return err
	}
	r.First = first.Sub(began).Seconds()
	r.AllCPU = cpuOf(pid)
	after := x.sample(pid, 0)
	r.Foreign = (after.other - before.other) / after.at.Sub(before.at).Seconds()
	if err := x.asking(ctx, addr, &r.GetsAfter, func() error { return wait(ctx, x.o.observe) }); err != nil {
		return err
	}
	// What was due last may not have arrived.
	r.While, r.After = w.latencies(runs, whole), w.latencies(whole.Add(time.Second), time.Now().Add(-time.Second))
	return nil
}

// asking asks for random rows while f runs.
func (x *snapBench) asking(ctx context.Context, addr string, to *latency, f func() error) error {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	rows := apiv1.NewQueriesClient(conn)
	within, end := context.WithCancel(ctx)
	defer end()
	var asking sync.WaitGroup
	asking.Go(func() {
		askAll(within, &kind{rate: x.o.gets, to: to, ask: func(ctx context.Context, rng *rand.Rand) error {
			key := workload.AppendKey(nil, rng.Uint64N(x.spec.Keys))
			var err error
			if x.o.windows {
				_, err = rows.Windows(ctx, &apiv1.RowsRequest{Store: "rows", RawKey: key, Raw: true})
			} else {
				_, err = rows.Get(ctx, &apiv1.GetRequest{Store: "rows", RawKey: key, Raw: true})
			}
			return err
		}})
	})
	err = f()
	end()
	asking.Wait()
	return err
}

// running waits until all tasks run.
func running(ctx context.Context, c *child, r *snapshotResult) error {
	for {
		select {
		case e, ok := <-c.events:
			switch {
			case !ok:
				return errors.New("it ended before it ran")
			case e.Kind == "phase" && e.Fields[0] == "running":
				return nil
			case e.Kind == "restore":
				// The source may be two words.
				n := len(e.Fields)
				if n >= 6 && e.Fields[n-1] == "true" {
					bytes, _ := strconv.ParseInt(e.Fields[n-3], 10, 64)
					r.Replayed += bytes
					r.Source = e.Fields[1]
					if n > 6 {
						r.Source += " " + e.Fields[2]
					}
				}
			}
		case <-ctx.Done():
			return fmt.Errorf("not running: %w", ctx.Err())
		}
	}
}

// hydrated waits until no task's directory lacks anything.
func hydrated(ctx context.Context, app string) error {
	for {
		tasks, err := tasksOf(app)
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(tasks)
		if err != nil {
			return err
		}
		missing := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			_, lacks, err := pebblestore.LazyIdentity(nil, filepath.Join(tasks, e.Name()))
			return lacks || err != nil // one that is just being removed
		})
		if !missing {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not hydrated: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

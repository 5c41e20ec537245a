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

	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// restoreResult is one restore without the disk. MB are of keys and values read from the changelogs; seconds are from
// the first request to the last row on disk, CPU of the whole process in that time.
type restoreResult struct {
	Kind     string    `json:"kind"`
	System   string    `json:"system"`
	Start    time.Time `json:"start"`
	Bytes    int64     `json:"changelog_bytes"`
	Rows     int64     `json:"rows"`
	WallS    float64   `json:"wall_s"`
	CPU      float64   `json:"cpu_s"`
	RSS      float64   `json:"peak_rss_mb"`
	LimitMB  int64     `json:"gomemlimit_mb"`
	Progress int       `json:"progress_events"` // besides begin and end
	Begun    int       `json:"begin_events"`
	Finished int       `json:"finished_events"`
	Check    string    `json:"check"` // ok, or how the rows differ from the bare loop's
	sum      uint64
}

func (r *restoreResult) perWall() float64 { return float64(r.Bytes) / 1e6 / r.WallS }
func (r *restoreResult) perCPU() float64  { return float64(r.Bytes) / 1e6 / r.CPU }

// restore measures a restore from the changelogs against a bare loop over the same, with the same memory limit.
func restore(ctx context.Context, args []string) error {
	var o options
	f := o.common("bench restore")
	size := f.String("size", "256MB", "size of the state, keys and values")
	f.IntVar(&o.runs, "runs", 3, "runs of each, in turn")
	cache := f.Int64("cache", 256<<20, "bytes of memory for state")
	limit := f.Int64("limit", 512, "GOMEMLIMIT of both in MB")
	if err := f.Parse(args); err != nil {
		return err
	}
	bytes, err := parseBytes(*size)
	if err != nil {
		return err
	}
	s, rows, err := stateSpec(bytes)
	if err != nil {
		return err
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	n := rows + rows/4 // a quarter of the keys is written again
	c, err := b.fill(ctx, s, n, &launch{events: true})
	if err != nil {
		return err
	}
	err = c.reach(int64(n))
	if err == nil {
		err = b.waitDrained(ctx, stateGroup, s.Input(), s.Output(), 100)
	}
	if err = errors.Join(err, c.stop(syscall.SIGTERM)); err != nil {
		return err
	}
	topic := stateGroup + "-rows-changelog"
	if err := b.spoilTail(ctx, topic); err != nil {
		return fmt.Errorf("tail of the changelog: %w", err)
	}
	fmt.Fprintln(os.Stderr, "tails of the changelog: partitions 0 and 2 an aborted transaction, 1 and 3 only a marker")
	l := &launch{env: []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", *limit)}, events: true}
	results := map[string][]*restoreResult{}
	seed := maphash.MakeSeed()
	for range o.runs {
		for _, sys := range []string{"bare", "tidemark"} {
			fmt.Fprintln(os.Stderr, "restore:", sys)
			r := &restoreResult{Kind: "restore", System: sys, Start: time.Now().UTC().Truncate(time.Second), LimitMB: *limit, Check: "ok"}
			if err := os.RemoveAll(b.stateDir()); err != nil {
				return err
			}
			args := b.stateArgs("-cache", strconv.FormatInt(*cache, 10))
			if sys == "bare" {
				args = []string{"bare", "-bootstrap", b.addr, "-topic", topic, "-state", b.stateDir(), "-cache", strconv.FormatInt(*cache, 10)}
			}
			if err := b.oneRestore(ctx, args, l, r); err != nil {
				return fmt.Errorf("restore: %s: %w", sys, err)
			}
			dir := b.stateDir()
			if sys == "tidemark" {
				if dir, err = tasksOf(filepath.Join(dir, stateGroup)); err != nil {
					return err
				}
			}
			if r.Rows, r.sum, err = fingerprint(dir, seed); err != nil {
				return err
			}
			if bare := results["bare"]; r.Rows != int64(rows) || len(bare) > 0 && r.sum != bare[0].sum {
				r.Check = fmt.Sprintf("%d rows of %d, or other values", r.Rows, rows)
			}
			results[sys] = append(results[sys], r)
			if err := emit(r, b.out); err != nil {
				return err
			}
		}
	}
	fmt.Println("\n| restore | changelog MB | rows | wall s | CPU-s | MB/s | MB per CPU-s | peak RSS MB | events: begin, progress, end | check |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	wall, cpu := map[string]float64{}, map[string]float64{}
	for _, sys := range []string{"bare", "tidemark"} {
		rs := results[sys]
		m := func(f func(*restoreResult) float64) float64 {
			var v []float64
			for _, r := range rs {
				v = append(v, f(r))
			}
			return median(v)
		}
		wall[sys], cpu[sys] = m((*restoreResult).perWall), m((*restoreResult).perCPU)
		last := rs[len(rs)-1]
		fmt.Printf("| %s | %d | %d | %.2f | %.2f | %.1f | %.1f | %.0f | %d, %d, %d | %s |\n", sys, last.Bytes/1e6, last.Rows,
			m(func(r *restoreResult) float64 { return r.WallS }), m(func(r *restoreResult) float64 { return r.CPU }),
			wall[sys], cpu[sys], m(func(r *restoreResult) float64 { return r.RSS }), last.Begun, last.Progress, last.Finished, last.Check)
	}
	fmt.Printf("\nof the bare loop: %.2f per CPU second, %.2f per second\n", cpu["tidemark"]/cpu["bare"], wall["tidemark"]/wall["bare"])
	return nil
}

// oneRestore runs a child until it has restored, or ended.
func (b *bench) oneRestore(ctx context.Context, args []string, l *launch, r *restoreResult) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	c, err := start(ctx, args, l)
	if err != nil {
		return err
	}
	var began, ended time.Time
	var used float64
	for e := range c.events {
		if rss := peakRSS(c.cmd.Process.Pid); rss > 0 {
			r.RSS = rss
		}
		if e.Kind == "phase" && e.Fields[0] == "running" {
			break
		}
		if e.Kind != "restore" {
			continue
		}
		if began.IsZero() {
			began, used = e.At, e.CPU
		}
		switch {
		case e.Fields[0] == "begin":
			r.Begun++
		case e.Fields[0] == "end":
			r.Bytes, _ = strconv.ParseInt(e.Fields[1], 10, 64)
			r.Finished++
		case e.Fields[5] == "true":
			n, _ := strconv.ParseInt(e.Fields[3], 10, 64)
			r.Bytes += n
			r.Finished++
		case e.Fields[2] == "0":
			r.Begun++
		default:
			r.Progress++
		}
		ended, r.WallS, r.CPU = e.At, e.At.Sub(began).Seconds(), e.CPU-used
	}
	if err := c.stop(syscall.SIGTERM); err != nil {
		return err
	}
	if ended.IsZero() || r.Bytes == 0 {
		return errors.New("nothing was restored")
	}
	return nil
}

// tasksOf returns the directory of the only sub-topology, which holds one database per partition.
func tasksOf(app string) (string, error) {
	entries, err := os.ReadDir(app)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			return filepath.Join(app, e.Name()), nil
		}
	}
	return "", fmt.Errorf("no tasks in %s", app)
}

// fingerprint returns the number of rows in the databases of all partitions and a sum that does not depend on order.
func fingerprint(dir string, seed maphash.Seed) (rows int64, sum uint64, err error) {
	for p := range workload.Partitions {
		db, err := pebblestore.Open(filepath.Join(dir, strconv.Itoa(p)), pebblestore.Options{})
		if err != nil {
			return 0, 0, err
		}
		it, err := db.Scan([]byte{1}, nil) // below are rows about the database itself
		if err != nil {
			return 0, 0, errors.Join(err, db.Close())
		}
		var buf []byte
		for it.Next() {
			buf = append(append(buf[:0], it.Key()...), it.Value()...)
			sum += maphash.Bytes(seed, buf)
			rows++
		}
		if err := errors.Join(it.Err(), it.Close(), db.Close()); err != nil {
			return 0, 0, err
		}
	}
	return rows, sum, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// cutResult is an owner that was killed while it hydrated, and the instance that took over.
type cutResult struct {
	Kind     string    `json:"kind"`
	Bytes    int64     `json:"state_bytes"`
	Start    time.Time `json:"start"`
	CutS     float64   `json:"killed_after_s"` // since the last task ran
	Here     int64     `json:"fetched_when_killed_bytes"`
	First    float64   `json:"first_record_s"` // of the other instance, with the time the group waits for the dead one
	Hydrated float64   `json:"hydrated_s"`
	Deleted  int64     `json:"deleted_objects"` // by collections while and after it hydrated
	Check    string    `json:"check"`           // rows of the other instance
	Again    string    `json:"check_after"`     // rows restored from what the collections have left
}

// cut kills the owner in the middle of its hydration. Another instance, on a disk of its own, takes over and finishes while
// snapshots are made and collected.
func (x *snapBench) cut(ctx context.Context) error {
	r := &cutResult{Kind: "snapshots-cut", Bytes: x.bytes, Start: time.Now().UTC().Truncate(time.Second)}
	one, two, three := filepath.Join(x.work, "one"), filepath.Join(x.work, "two"), filepath.Join(x.work, "three")
	for _, dir := range []string{one, two, three} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	var other *child
	err := x.updating(ctx, x.o.rate, func(ctx context.Context) (err error) {
		other, err = x.cutAndTakeOver(ctx, r, one, two)
		return err
	})
	if other == nil {
		return err
	}
	if err = errors.Join(err, x.settle(ctx, other, 0), r.deleted(other)); err != nil {
		return err
	}
	if r.Check, err = x.check(two); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "restoring from what is left")
	c, err := start(ctx, x.args(three, x.from("full")...), &launch{events: true})
	if err != nil {
		return err
	}
	var again snapshotResult
	err = running(ctx, c, &again)
	if err = errors.Join(err, x.settle(ctx, c, 0)); err != nil {
		return err
	}
	if r.Again, err = x.check(three); err != nil {
		return err
	}
	if again.Source != "snapshot" {
		r.Again = "restored from " + again.Source
	}
	if err := emit(r, x.o.out); err != nil {
		return err
	}
	fmt.Printf("\nkilled %.1f s after it ran with %d of the MB here; the other: first record %.1f s, hydrated %.1f s, %d objects collected; rows %s, again %s\n",
		r.CutS, r.Here/1e6, r.First, r.Hydrated, r.Deleted, r.Check, r.Again)
	return nil
}

func (x *snapBench) cutAndTakeOver(ctx context.Context, r *cutResult, one, two string) (other *child, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	// A twentieth of the state each second.
	lazily := append(x.from("lazy"), "-snapshot-rate", strconv.FormatInt(max(x.bytes/20, 1<<20), 10))
	c, err := start(ctx, x.args(one, lazily...), &launch{events: true})
	if err != nil {
		return nil, err
	}
	var first snapshotResult
	if err := running(ctx, c, &first); err != nil {
		return nil, errors.Join(err, c.stop(syscall.SIGKILL))
	}
	if first.Source != "lazy snapshot" {
		return nil, errors.Join(fmt.Errorf("restored from %s", first.Source), c.stop(syscall.SIGKILL))
	}
	ran := time.Now()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	if err := c.stop(syscall.SIGKILL); err != nil {
		return nil, err
	}
	r.CutS = time.Since(ran).Seconds()
	if r.Here, err = bytesOf(one); err != nil {
		return nil, err
	}
	soon, cancelSoon := context.WithTimeout(ctx, time.Millisecond)
	defer cancelSoon()
	if hydrated(soon, filepath.Join(one, stateGroup)) == nil {
		return nil, errors.New("everything was here before it was killed")
	}
	fmt.Fprintln(os.Stderr, "killed while it hydrated, another one takes over")
	w, err := x.watch(ctx, x.spec)
	if err != nil {
		return nil, err
	}
	defer w.close()
	began := time.Now()
	// It outlives ctx.
	c, err = start(context.WithoutCancel(ctx), x.args(two, "-snapshots", x.store, "-restore", "lazy", "-snapshot-interval", "3s", "-snapshot-grace", "6s",
		"-snapshot-rate", "-1", "-snapshot-delay", x.o.delay.String()), &launch{events: true})
	if err != nil {
		return nil, err
	}
	return c, x.finishCut(ctx, c, w, r, two, began)
}

func (r *cutResult) deleted(c *child) error {
	if n := len(c.stored); n > 0 {
		r.Deleted = c.stored[n-1].Deletes
	}
	if r.Deleted == 0 {
		return errors.New("nothing was collected")
	}
	return nil
}

// finishCut waits until the other instance has everything, and every task several snapshots more.
func (x *snapBench) finishCut(ctx context.Context, c *child, w *watcher, r *cutResult, dir string, began time.Time) error {
	var second snapshotResult
	if err := running(ctx, c, &second); err != nil {
		return err
	}
	if second.Source != "lazy snapshot" {
		return fmt.Errorf("the other restored from %s", second.Source)
	}
	fmt.Fprintln(os.Stderr, "the other one runs")
	first, err := w.wait(ctx, x.timeout)
	if err != nil {
		return err
	}
	if err := hydrated(ctx, filepath.Join(dir, stateGroup)); err != nil {
		return err
	}
	r.First, r.Hydrated = first.Sub(began).Seconds(), time.Since(began).Seconds()
	fmt.Fprintln(os.Stderr, "it has everything")
	for range 5 { // three are kept, and what is younger than the grace stays
		if err := x.published(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf returns how much of the disk a directory takes: files of lazily opened databases have holes.
func bytesOf(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += blocks(info)
		}
		return err
	})
	return sum, err
}

// blocks returns what a file takes of its disk.
func blocks(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

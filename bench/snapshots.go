package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/bench/internal/check"
	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/internal/s3test"
)

// snapshotOptions are those of the measurements with snapshots.
type snapshotOptions struct {
	options
	sizes    string
	ways     string
	store    string
	delay    time.Duration
	value    int
	rate     int
	gets     int
	observe  time.Duration
	cut, dip bool
	windows  bool
}

func (o *snapshotOptions) parse(args []string) error {
	f := o.common("bench snapshots")
	f.StringVar(&o.sizes, "sizes", "1GB,4GB", "sizes of the state, keys and values")
	f.StringVar(&o.ways, "ways", "changelog,snapshot,lazy,disk", "ways of restoring, in this order")
	f.StringVar(&o.store, "store", "s3", "s3: a server on loopback, or dir: a directory")
	f.DurationVar(&o.delay, "delay", 0, "delay of every request to the object store of a measured restore")
	f.IntVar(&o.value, "value", 200, "bytes of a value")
	f.IntVar(&o.rate, "rate", 200, "updates a second during a restore")
	f.IntVar(&o.gets, "gets", 100, "point gets a second, over gRPC, of random rows, from when all tasks run")
	f.DurationVar(&o.observe, "observe", 5*time.Second, "how long updates and gets are observed after a restore")
	f.BoolVar(&o.cut, "cut", false, "kill the owner while it hydrates, instead of measuring")
	f.BoolVar(&o.dip, "dip", false, "throughput of W2 with and without snapshots every 10 s, instead of restores")
	f.BoolVar(&o.windows, "windows", false, "the state is 200 windows of a minute, of which 50 end for good after the snapshots")
	f.IntVar(&o.runs, "runs", 3, "runs of each, in turn")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%w: %q", flag.ErrHelp, f.Arg(0))
	}
	return nil
}

// snapBench is the state under measurement: in the changelogs, in snapshots, on a disk that is kept, and as it must be.
type snapBench struct {
	*bench
	o     snapshotOptions
	spec  workload.Spec
	bytes int64
	store string // as the child wants it
	rows  *check.Rows
	seed  maphash.Seed // of the sums of rows
	tail  int          // rows updated behind the snapshots
	next  uint64       // seed of the last updates
	now   int64        // event time of updates, with windows
	moved bool         // the oldest windows have ended
}

// snapshots measures restores from snapshots against those from the changelogs and from the disk.
func snapshots(ctx context.Context, args []string) error {
	var o snapshotOptions
	if err := o.parse(args); err != nil {
		return err
	}
	b, done, err := open(ctx, o.options)
	if err != nil {
		return err
	}
	defer done()
	if o.dip {
		return b.dip(ctx, o)
	}
	var all []*snapshotResult
	for size := range strings.SplitSeq(o.sizes, ",") {
		bytes, err := parseBytes(size)
		if err != nil {
			return err
		}
		results, err := b.snapshotsOf(ctx, o, bytes)
		if err != nil {
			return fmt.Errorf("snapshots of %s: %w", size, err)
		}
		all = append(all, results...)
	}
	if !o.cut {
		printSnapshots(os.Stdout, all)
	}
	return nil
}

// bucket starts an empty object store and returns it as a child wants it.
func (b *bench) bucket(ctx context.Context, kind string) (name string, done func(), err error) {
	dir := filepath.Join(b.work, "objects")
	if err := os.RemoveAll(dir); err != nil {
		return "", nil, err
	}
	switch kind {
	case "dir":
		return "dir:" + dir, func() { _ = os.RemoveAll(dir) }, nil
	case "s3":
		if _, err := s3test.Install(ctx); err != nil {
			return "", nil, err
		}
		s, err := s3test.Start(ctx, s3test.Options{Dir: dir})
		if err != nil {
			return "", nil, err
		}
		done = func() {
			_ = s.Stop()
			_ = os.RemoveAll(dir)
		}
		if err := s.CreateBucket("bench"); err != nil {
			done()
			return "", nil, err
		}
		return "s3:bench@" + s.Endpoint(), done, nil
	}
	return "", nil, fmt.Errorf("no object store %q", kind)
}

func (b *bench) snapshotsOf(ctx context.Context, o snapshotOptions, bytes int64) ([]*snapshotResult, error) {
	name, done, err := b.bucket(ctx, o.store)
	if err != nil {
		return nil, err
	}
	defer done()
	kind := "STATE"
	if o.windows {
		kind = "WINDOWS"
	}
	s, err := workload.Find(kind)
	if err != nil {
		return nil, err
	}
	s.Size = o.value
	s.Keys = uint64(max(1, bytes/int64(workload.KeySize+o.value)))
	x := &snapBench{bench: b, o: o, spec: s, bytes: bytes, store: name, seed: maphash.MakeSeed(), tail: int(s.Keys) / 100, next: b.seed + 1}
	defer os.RemoveAll(x.kept())
	if err := x.build(ctx); err != nil {
		return nil, err
	}
	if o.cut {
		return nil, x.cut(ctx)
	}
	var results []*snapshotResult
	for run := range o.runs {
		for way := range strings.SplitSeq(o.ways, ",") {
			fmt.Fprintf(os.Stderr, "%d MB: %s\n", bytes/1e6, way)
			r, err := x.restore(ctx, way, run)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			results = append(results, r)
			if err := emit(r, o.out); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func (x *snapBench) kept() string { return filepath.Join(x.work, "kept") }

// args are those of a child with its state in dir. more are the flags of snapshots.
func (x *snapBench) args(dir string, more ...string) []string {
	return append([]string{"system", "-bootstrap", x.addr, "-group", stateGroup, "-w", x.spec.Name, "-events", "-state", dir}, more...)
}

// from are the flags for snapshots that are only read.
func (x *snapBench) from(restore string) []string {
	return []string{"-snapshots", x.store, "-restore", restore, "-snapshot-interval", "24h", "-snapshot-delay", x.o.delay.String()}
}

// build makes the state, a snapshot of every task, and then the tail.
func (x *snapBench) build(ctx context.Context) error {
	began := time.Now()
	if err := x.reset(ctx, stateGroup, x.spec.Output()); err != nil {
		return err
	}
	if err := os.RemoveAll(x.kept()); err != nil {
		return err
	}
	n := int(x.spec.Keys)
	fmt.Fprintf(os.Stderr, "loading %d records\n", n)
	if err := x.load(ctx, x.spec, n); err != nil {
		return err
	}
	x.rows = check.NewRows(x.spec.Keys+3*uint64(x.tail), x.seed)
	if x.o.windows {
		x.fillWindows(n)
	} else {
		x.rows.Fill(x.spec, n, x.bench.seed)
	}
	fmt.Fprintln(os.Stderr, "building the state")
	c, err := start(ctx, x.args(x.kept()), nil)
	if err != nil {
		return err
	}
	if err := x.settle(ctx, c, n); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	fmt.Fprintln(os.Stderr, "uploading snapshots")
	uploading := time.Now()
	c, err = start(ctx, x.args(x.kept(), "-snapshots", x.store, "-snapshot-interval", "2s", "-snapshot-rate", "-1"), &launch{events: true})
	if err != nil {
		return err
	}
	err = x.updating(ctx, x.o.rate, func(ctx context.Context) error { return x.published(ctx, c) })
	if err = errors.Join(err, x.settle(ctx, c, 0)); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	if len(c.stored) > 0 {
		s := c.stored[len(c.stored)-1]
		fmt.Fprintf(os.Stderr, "uploaded %d MB in %.0f s\n", s.PutBytes/1e6, time.Since(uploading).Seconds())
	}
	fmt.Fprintf(os.Stderr, "updating %d rows\n", x.tail)
	if c, err = start(ctx, x.args(x.kept()), nil); err != nil {
		return err
	}
	if x.o.windows {
		err = x.moveOn(ctx)
	} else {
		err = workload.Update(ctx, x.addr, x.spec, x.updates(workload.Updates{N: x.tail}))
	}
	if err = errors.Join(err, x.settle(ctx, c, 0)); err != nil {
		return fmt.Errorf("tail: %w", err)
	}
	if !x.o.windows {
		if verdict, err := x.check(x.kept()); err != nil || verdict != "ok" {
			return errors.Join(fmt.Errorf("the state is %s", verdict), err)
		}
	}
	fmt.Fprintf(os.Stderr, "ready after %.0f s\n", time.Since(began).Seconds())
	return nil
}

// published waits until every task has a snapshot and a commit, or several, behind it.
func (x *snapBench) published(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	have := map[string]bool{}
	for len(have) < workload.Partitions {
		select {
		case e, ok := <-c.events:
			if !ok {
				return errors.New("it ended before its snapshots")
			}
			if e.Kind == "snapshot" {
				have[e.Fields[0]] = true
			}
		case <-ctx.Done():
			return fmt.Errorf("snapshots of %d tasks: %w", len(have), ctx.Err())
		}
	}
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until a child has processed n records and committed everything there is, and stops it.
func (x *snapBench) settle(ctx context.Context, c *child, n int) error {
	if n > 0 {
		if err := c.reach(int64(n)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	err := x.waitDrained(ctx, stateGroup, x.spec.Input(), x.spec.Output(), 100)
	return errors.Join(err, c.stop(syscall.SIGTERM))
}

// updating calls f while there are updates, and waits for the last of them.
func (x *snapBench) updating(ctx context.Context, rate int, f func(context.Context) error) error {
	writing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	u := x.updates(workload.Updates{Rate: rate})
	go func() { ended <- workload.Update(writing, x.addr, x.spec, u) }()
	err := f(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// updates completes what is known of updates: those of windows are of keys of their own, others for every newest window.
func (x *snapBench) updates(u workload.Updates) workload.Updates {
	x.next++
	u.Seed, u.Sent = x.next, x.rows.Set
	if x.o.windows {
		now, first := x.now, x.spec.Keys+uint64(x.tail)
		if x.moved {
			first += uint64(x.tail)
		}
		u.At = func(i int) (uint64, int64) { return first + uint64(i%x.tail), now }
		u.Sent = x.setWindow
	}
	return u
}

// check compares the rows of a directory that nobody has open with those there must be.
func (x *snapBench) check(dir string) (verdict string, err error) {
	tasks, err := tasksOf(filepath.Join(dir, stateGroup))
	if err != nil {
		return "", err
	}
	rows, sum, err := fingerprint(tasks, x.seed)
	if err != nil {
		return "", err
	}
	return x.rows.Compare(rows, sum), nil
}

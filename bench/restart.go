package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/bench/internal/workload"
)

// restartResult is one kill -9 and restart. Times are in ms. The phases follow one another and each ends when the last
// task has left it, so that their sum may be more than the time to the first result, which is that of the first task.
type restartResult struct {
	Kind      string    `json:"kind"`
	Bytes     int64     `json:"state_bytes"`
	Rows      int       `json:"rows"`
	Run       int       `json:"run"`
	Start     time.Time `json:"start"`
	Topics    float64   `json:"topics_ms"`       // process start, check of the topics
	Producers float64   `json:"producers_ms"`    // initialisation, which ends what was left open
	Join      float64   `json:"join_ms"`         // group and assignment
	Fetch     float64   `json:"fetch_ms"`        // offsets, ends of logs, last commit
	Open      float64   `json:"open_ms"`         // database
	Replay    float64   `json:"replay_ms"`       // changelog beyond what the database holds
	Check     float64   `json:"check_ms"`        // views, open transactions, hand-over to the worker
	Commit    float64   `json:"first_commit_ms"` // first transaction
	Visible   float64   `json:"visible_ms"`      // whole: first new record read by a read_committed consumer
	All       float64   `json:"all_running_ms"`  // whole: every task runs
	Replayed  int64     `json:"replayed_bytes"`
	Source    string    `json:"restored_from"`
	CPU       float64   `json:"cpu_s"` // until the first commit
}

// restart builds state of some sizes and measures, under a trickle of updates, how long results stay away when the
// only instance is killed and started again on its disk.
func restart(ctx context.Context, args []string) error {
	var o options
	f := o.common("bench restart")
	sizes := f.String("sizes", "10MB,100MB,1GB", "sizes of the state, keys and values")
	f.IntVar(&o.runs, "runs", 3, "restarts at each size")
	rate := f.Int("rate", 2000, "updates a second while it is killed")
	static := f.String("static", "bench-1", "instance id; empty for dynamic membership")
	after := f.Duration("after", 5*time.Second, "how long it runs before it is killed")
	if err := f.Parse(args); err != nil {
		return err
	}
	b, done, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	var all [][]restartResult
	for size := range strings.SplitSeq(*sizes, ",") {
		bytes, err := parseBytes(size)
		if err != nil {
			return err
		}
		results, err := b.restarts(ctx, bytes, *rate, *static, *after)
		if err != nil {
			return fmt.Errorf("restart with %s: %w", size, err)
		}
		all = append(all, results)
	}
	fmt.Println("\n| state MB | topics | producers | join | fetch | open | replay | check | first commit | all tasks run | visible ms, median | worst | replayed MB | CPU-s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, rs := range all {
		m := func(f func(restartResult) float64) float64 {
			var v []float64
			for _, r := range rs {
				v = append(v, f(r))
			}
			return median(v)
		}
		worst := slices.MaxFunc(rs, func(a, b restartResult) int { return int(a.Visible - b.Visible) })
		fmt.Printf("| %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %.2f |\n", rs[0].Bytes/1e6,
			m(func(r restartResult) float64 { return r.Topics }), m(func(r restartResult) float64 { return r.Producers }),
			m(func(r restartResult) float64 { return r.Join }), m(func(r restartResult) float64 { return r.Fetch }),
			m(func(r restartResult) float64 { return r.Open }), m(func(r restartResult) float64 { return r.Replay }),
			m(func(r restartResult) float64 { return r.Check }), m(func(r restartResult) float64 { return r.Commit }),
			m(func(r restartResult) float64 { return r.All }), m(func(r restartResult) float64 { return r.Visible }), worst.Visible,
			m(func(r restartResult) float64 { return float64(r.Replayed) / 1e6 }), m(func(r restartResult) float64 { return r.CPU }))
	}
	return nil
}

const stateGroup = "bench-state"

// stateSpec returns the workload that leaves so many bytes of keys and values behind.
func stateSpec(bytes int64) (workload.Spec, int, error) {
	s, err := workload.Find("STATE")
	rows := max(int(bytes/(workload.KeySize+workload.ValueSize)), 1)
	s.Keys = uint64(rows)
	return s, rows, err
}

// stateArgs starts Tidemark on the state workload.
func (b *bench) stateArgs(more ...string) []string {
	return append([]string{"system", "-bootstrap", b.addr, "-group", stateGroup, "-w", "STATE", "-events", "-state", b.stateDir()}, more...)
}

func (b *bench) stateDir() string { return filepath.Join(b.work, "state") }

// fill loads n records and has Tidemark make state of them. The child still runs.
func (b *bench) fill(ctx context.Context, s workload.Spec, n int, l *launch, more ...string) (*child, error) {
	if err := b.reset(ctx, stateGroup, s.Output()); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(b.stateDir()); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "loading %d records\n", n)
	if err := b.load(ctx, s, n); err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "building the state")
	return start(ctx, b.stateArgs(more...), l)
}

func (b *bench) restarts(ctx context.Context, bytes int64, rate int, static string, after time.Duration) (results []restartResult, err error) {
	s, rows, err := stateSpec(bytes)
	if err != nil {
		return nil, err
	}
	var member []string
	if static != "" {
		member = []string{"-static", static}
	}
	c, err := b.fill(ctx, s, rows, &launch{events: true}, member...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop(syscall.SIGKILL)) }()
	if err := c.reach(int64(rows)); err != nil {
		return nil, err
	}
	if err := b.waitDrained(ctx, stateGroup, s.Input(), s.Output(), 100); err != nil {
		return nil, err
	}
	updating, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- workload.Trickle(updating, b.addr, s, rate, b.seed) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	for run := range b.runs {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(after):
		}
		if err := c.stop(syscall.SIGKILL); err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "killed")
		r := restartResult{Kind: "restart", Bytes: bytes, Rows: rows, Run: run, Start: time.Now().UTC().Truncate(time.Second)}
		visible, closeObserver, err := b.observe(ctx, s)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if c, err = start(ctx, b.stateArgs(member...), &launch{events: true}); err != nil {
			closeObserver()
			return nil, err
		}
		seen, err := b.await(ctx, visible)
		closeObserver()
		if err != nil {
			return nil, err
		}
		r.Visible = seen.Sub(began).Seconds() * 1e3
		r.phases(began, c.events)
		results = append(results, r)
		if err := emit(r, b.out); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// observe watches for committed records beyond the present end of the output.
func (b *bench) observe(ctx context.Context, s workload.Spec) (<-chan time.Time, func(), error) {
	ends, err := b.adm.ListEndOffsets(ctx, s.Output())
	if err != nil {
		return nil, nil, err
	}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) { from[o.Partition] = kgo.NewOffset().At(o.Offset) })
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Output(): from}))
	if err != nil {
		return nil, nil, err
	}
	seen := make(chan time.Time, 1)
	go func() {
		for {
			f := cl.PollFetches(ctx)
			if f.IsClientClosed() || ctx.Err() != nil {
				return
			}
			if f.NumRecords() > 0 {
				seen <- time.Now()
				return
			}
		}
	}()
	return seen, cl.Close, nil
}

func (b *bench) await(ctx context.Context, visible <-chan time.Time) (time.Time, error) {
	select {
	case t := <-visible:
		return t, nil
	case <-time.After(b.timeout):
		return time.Time{}, errors.New("no new output")
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// phases divides the time up to the first commit by the events of the process.
func (r *restartResult) phases(began time.Time, events <-chan system.Event) {
	var producers, joining, assigned, seen, opened, replayed, running, commit time.Time
	latest := func(t *time.Time, at time.Time) {
		if at.After(*t) {
			*t = at
		}
	}
	begun := map[string]bool{}
	for e := range events {
		switch {
		case e.Kind == "phase" && e.Fields[0] == "initialising producers":
			producers = e.At
		case e.Kind == "phase" && e.Fields[0] == "joining":
			joining = e.At
		case e.Kind == "phase" && e.Fields[0] == "running":
			running = e.At
		case e.Kind == "task" && e.Fields[1] == "opening":
			latest(&assigned, e.At)
		case e.Kind == "restore" && len(e.Fields) == 6:
			if us, err := strconv.ParseInt(e.Fields[4], 10, 64); err == nil {
				latest(&seen, time.UnixMicro(us))
			}
			if !begun[e.Fields[0]] {
				begun[e.Fields[0]] = true
				latest(&opened, e.At)
			}
			if e.Fields[5] == "true" {
				latest(&replayed, e.At)
				n, _ := strconv.ParseInt(e.Fields[3], 10, 64)
				r.Replayed += n
				r.Source = e.Fields[1]
			}
		case e.Kind == "commit":
			commit, r.CPU = e.At, e.CPU
		}
		if !commit.IsZero() && !running.IsZero() {
			break
		}
	}
	last := began
	step := func(ms *float64, at time.Time) {
		if at.After(last) {
			*ms = at.Sub(last).Seconds() * 1e3
			last = at
		}
	}
	step(&r.Topics, producers)
	step(&r.Producers, joining)
	step(&r.Join, assigned)
	step(&r.Fetch, seen)
	step(&r.Open, opened)
	step(&r.Replay, replayed)
	step(&r.Check, running)
	r.All = running.Sub(began).Seconds() * 1e3
	step(&r.Commit, commit)
}

// parseBytes reads sizes as 10MB or 1GB, in powers of ten.
func parseBytes(text string) (int64, error) {
	for suffix, unit := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n <= 0 {
				return 0, fmt.Errorf("size %q", text)
			}
			return n * unit, nil
		}
	}
	return 0, fmt.Errorf("size %q: want a number with KB, MB or GB", text)
}

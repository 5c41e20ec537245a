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

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// result is one run. CPU is of the measured process only, user and system, per million records of the input: whole is
// from its start until everything is committed, steady begins after the warm-up.
type result struct {
	System     string    `json:"system"`
	Workload   string    `json:"workload"`
	Records    int       `json:"records"`
	CommitMs   int       `json:"commit_ms"`
	Guarantee  string    `json:"guarantee,omitzero"`
	EndDelayMs int64     `json:"end_delay_ms,omitzero"`
	Pinned     bool      `json:"pinned,omitzero"` // to one core
	Start      time.Time `json:"start"`
	WallS      float64   `json:"wall_s"`
	Rate       float64   `json:"records_per_s"` // steady
	CPU        float64   `json:"cpu_s_per_m"`
	SteadyCPU  float64   `json:"steady_cpu_s_per_m"`
	BrokerCPU  float64   `json:"broker_cpu_s_per_m"` // 0 with -brokers
	RSS        float64   `json:"peak_rss_mb"`
	Output     int64     `json:"output_records"`
	OutputLog  int64     `json:"output_log_bytes"`
	OwnLog     int64     `json:"own_log_bytes"` // changelogs, repartition topics, progress
	ForeignCPU float64   `json:"foreign_cores"` // used by everything else on the machine
	Check      string    `json:"check"`         // ok, or the first difference
}

// sample is the state of the machine when the system reported its progress.
type sample struct {
	at                 time.Time
	records            int64
	app, broker, other float64
}

func (b *bench) sample(pid int, records int64) sample {
	app, broker := cpuOf(pid), cpuOf(b.brokerPid)
	return sample{time.Now(), records, app, broker, cpuTotal() - app - broker - cpuOf(os.Getpid())}
}

// variant is how a system is set up.
type variant struct {
	commitMs  int
	guarantee string        // of Tidemark; empty for exactly-once
	endDelay  time.Duration // of Tidemark's requests that end a transaction
	pinned    bool          // to one core
	more      []string      // arguments of Tidemark
	ended     func(*child)  // is told of the child that has ended
}

// measure runs one system on a loaded input.
func (b *bench) measure(ctx context.Context, sys string, s workload.Spec, n int, v variant) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	group, state := "bench-"+sys, filepath.Join(b.work, "state")
	if err := b.reset(ctx, group, s.Output()); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(state); err != nil {
		return nil, err
	}
	args := []string{"-bootstrap", b.addr, "-group", group, "-state", state, "-w", s.Name, "-commit-ms", strconv.Itoa(v.commitMs)}
	switch sys {
	case "tidemark":
		args = append([]string{"system"}, args...)
		if v.guarantee != "" {
			args = append(args, "-guarantee", v.guarantee)
		}
		if v.endDelay > 0 {
			args = append(args, "-end-delay", v.endDelay.String())
		}
		args = append(args, v.more...)
		if b.profiles != "" {
			args = append(args, "-cpuprofile", filepath.Join(b.profiles, s.Name+".prof"))
		}
	case "ceiling":
		args = append([]string{"ceiling"}, args...)
	default:
		return nil, fmt.Errorf("unknown system %q", sys)
	}
	r := &result{System: sys, Workload: s.Name, Records: n, CommitMs: v.commitMs, Guarantee: v.guarantee, EndDelayMs: v.endDelay.Milliseconds(), Start: time.Now().UTC().Truncate(time.Second)}
	l := &launch{}
	if v.pinned {
		l.prefix = pin()
		r.Pinned = l.prefix != nil
	}
	c, err := start(ctx, args, l)
	if err != nil {
		return nil, err
	}
	pid := c.cmd.Process.Pid
	samples := []sample{b.sample(pid, 0)}
	for at := samples[0]; at.records < int64(n); {
		x, ok := <-c.progress
		if !ok {
			return nil, errors.Join(errors.New("it ended before its input"), c.cmd.Wait())
		}
		at = b.sample(pid, x)
		samples = append(samples, at)
	}
	processed := samples[len(samples)-1]
	if err := b.waitDrained(ctx, group, s.Input(), s.Output(), v.commitMs); err != nil {
		return nil, errors.Join(err, c.stop(syscall.SIGKILL))
	}
	first, last := samples[0], b.sample(pid, int64(n))
	warm := at(samples, int64(b.warm*float64(n)))
	million := float64(n) / 1e6
	r.WallS = last.at.Sub(first.at).Seconds()
	r.Rate = float64(processed.records-warm.records) / processed.at.Sub(warm.at).Seconds()
	r.CPU = (last.app - first.app) / million
	r.SteadyCPU = (last.app - warm.app) / (million * (1 - b.warm))
	r.BrokerCPU = (last.broker - first.broker) / million
	r.ForeignCPU = (last.other - first.other) / r.WallS
	r.RSS = peakRSS(pid)
	if r.OutputLog, r.OwnLog, err = b.logBytes(ctx, group, s.Output()); err != nil {
		return nil, errors.Join(err, c.stop(syscall.SIGKILL))
	}
	if err := c.stop(syscall.SIGTERM); err != nil {
		return nil, fmt.Errorf("it did not end cleanly: %w", err)
	}
	if v.ended != nil {
		v.ended(c)
	}
	r.Check = "ok"
	if r.Output, err = b.verify(ctx, s, n); err != nil {
		r.Check = err.Error()
	}
	return r, nil
}

// at returns the sample at a number of records, on the line between its neighbours.
func at(samples []sample, records int64) sample {
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		if b.records < records || b.records == a.records {
			continue
		}
		f := float64(records-a.records) / float64(b.records-a.records)
		between := func(x, y float64) float64 { return x + f*(y-x) }
		return sample{a.at.Add(time.Duration(f * float64(b.at.Sub(a.at)))), records,
			between(a.app, b.app), between(a.broker, b.broker), between(a.other, b.other)}
	}
	return samples[len(samples)-1]
}

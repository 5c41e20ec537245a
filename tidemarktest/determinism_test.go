package tidemarktest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/verify/eventtime"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

var determinism = eventtime.Settings{Size: 20, Delay: 10, Lateness: 40, Partitions: 4, Records: 40, Keys: 5}

// sums is the topology of the tests of determinism: one stage with four topics in one task, or two with a repartition
// behind four partitions.
func sums(t *testing.T, stages int, opts ...window.Option) *topology.Plan {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	set := determinism
	topo := topology.New("sums")
	in := func(topic string) *topology.Stream[string, int64] {
		return topo.Stream[string, int64](topic).
			Timestamps(nil, watermark.OutOfOrderness(ms(set.Delay)), watermark.IdleAfter(watermark.Never), watermark.Align(watermark.Never)).
			TryFilter(func(_ *topology.Context, k string, _ int64) (bool, error) { return k != "z", nil })
	}
	s := in("in0")
	if stages == 1 {
		s = s.Merge(in("in1")).Merge(in("in2")).Merge(in("in3"))
	} else {
		s = s.TryKeyBy("cut", func(_ *topology.Context, k string, _ int64) (string, error) { return k, nil })
	}
	s.Window(window.Tumbling(ms(set.Size)), append(opts, window.AllowedLateness(ms(set.Lateness)))...).
		Sum("sums", func(v int64) int64 { return v }).To("out")
	plan, err := topo.Build()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// placeOf returns topic and partition of one of the four source partitions.
func placeOf(stages, p int) (topic string, partition int) {
	if stages == 1 {
		return fmt.Sprint("in", p), 0
	}
	return "in0", p
}

// interleave executes the plan over the records: which partition is read when, how much a task takes, and who commits
// when, is up to r.
func interleave(t *testing.T, r *rand.Rand, plan *topology.Plan, stages int, parts [][]eventtime.Record, silences bool) eventtime.Outcome {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Instances: 1 + r.IntN(3), lazy: true}
	if stages == 2 {
		o.Partitions = len(parts)
	}
	c, err := newCluster(plan, o)
	check(err)
	put := func(p int, key string, v, at int64) {
		topic, n := placeOf(stages, p)
		check(c.send(topic, n, record{time: at, key: []byte(key), value: binary.BigEndian.AppendUint64(nil, uint64(v))}))
	}
	next := make([]int, len(parts))
	left := 0
	for _, p := range parts {
		left += len(p)
	}
	pace := 1 + r.IntN(8)
	ahead := r.IntN(len(parts)) // a partition that is read more often than the others
	for left > 0 {
		switch n := r.IntN(20); {
		case n < 12:
			p := r.IntN(len(parts))
			if r.IntN(2) == 0 {
				p = ahead
			}
			for range 1 + r.IntN(pace) {
				if next[p] < len(parts[p]) {
					rec := parts[p][next[p]]
					put(p, rec.Key, rec.Value, rec.Time)
					next[p]++
					left--
				}
			}
		case n < 18:
			var tasks []*task
			for _, inst := range c.instances {
				tasks = append(tasks, inst.tasks...)
			}
			task := tasks[r.IntN(len(tasks))]
			if silences && r.IntN(20) == 0 {
				task.inputs[r.IntN(len(task.inputs))].from.silent = true
			}
			_, err := task.run(1 + r.IntN(40))
			check(err)
		default:
			_, err := c.commitInstance(c.instances[r.IntN(len(c.instances))])
			check(err)
		}
	}
	for p := range parts {
		put(p, "z", 0, 1<<40)
	}
	c.o.lazy = false
	check(c.commit())
	var panes []eventtime.Pane
	for _, part := range c.logs["out"].parts {
		for i := range part.records {
			rec := &part.records[i]
			p, _, err := paneOf(rec)
			check(err)
			panes = append(panes, eventtime.Pane{
				Key: string(userKey(rec, p)), Window: p.Bounds, Timing: p.Timing, Value: int64(binary.BigEndian.Uint64(rec.value)),
			})
		}
	}
	var dropped []int64
	for _, l := range c.late {
		dropped = append(dropped, int64(binary.BigEndian.Uint64(l.Value)))
	}
	return eventtime.Judge(panes, dropped)
}

// Execution again from the sources, with partitions that interleave otherwise, other commits and other owners (T2): what
// must not differ does not, and what may differ does for some data, so that the test can see it.
func TestReexecution(t *testing.T) {
	const datasets, runs = 12, 8
	for _, row := range []struct {
		name     string
		disorder eventtime.Disorder
		origin   bool
		silences bool
		want     eventtime.Differences // in some data set
	}{
		{"in time", eventtime.InTime, false, false, eventtime.Differences{}},
		{"in time, by origin", eventtime.InTime, true, false, eventtime.Differences{}},
		{"late", eventtime.LateWithin, false, false, eventtime.Differences{OnTime: true}},
		{"late, by origin", eventtime.LateWithin, true, false, eventtime.Differences{OnTime: true}},
		{"too late", eventtime.TooLate, false, false, eventtime.Differences{OnTime: true, Finals: true, Dropped: true}},
		{"too late, by origin", eventtime.TooLate, true, false, eventtime.Differences{OnTime: true}},
		{"in time, with silences", eventtime.InTime, false, true, eventtime.Differences{OnTime: true, Finals: true, Dropped: true}},
	} {
		for stages := 1; stages <= 2; stages++ {
			t.Run(fmt.Sprint(row.name, ", ", stages), func(t *testing.T) {
				t.Parallel()
				var opts []window.Option
				if row.origin {
					opts = append(opts, window.Origin())
				}
				plan := sums(t, stages, opts...)
				var differs eventtime.Differences
				for seed := range uint64(datasets) {
					r := rand.New(rand.NewPCG(seed, uint64(stages)))
					parts := eventtime.Generate(r, determinism, row.disorder)
					first := interleave(t, r, plan, stages, parts, row.silences)
					if row.disorder == eventtime.InTime && !row.silences && (first.Late > 0 || len(first.Dropped) > 0) {
						t.Errorf("seed %d: %d late panes, %d records dropped", seed, first.Late, len(first.Dropped))
					}
					for run := range runs {
						again := interleave(t, r, plan, stages, parts, row.silences)
						d := eventtime.Compare(first, again)
						if d.OnTime && !row.want.OnTime || d.Finals && !row.want.Finals || d.Dropped && !row.want.Dropped {
							t.Fatalf("seed %d, run %d: %v differ", seed, run, d)
						}
						differs = differs.Or(d)
					}
				}
				// How far apart silences lead depends on their length: on time is what they must change.
				if differs != row.want && !(row.silences && differs.OnTime) {
					t.Errorf("in some data %v differ, want %v", differs, row.want)
				}
			})
		}
	}
}

// The same log read again (T1): one task with one input partition gives the same panes with the same numbers, wherever
// its transactions end and however often it dies.
func TestReplay(t *testing.T) {
	one := determinism
	one.Partitions = 1
	topo := topology.New("replay")
	topo.Stream[string, int64]("in").
		Timestamps(nil, watermark.OutOfOrderness(time.Duration(one.Delay)*time.Millisecond)).
		Window(window.Tumbling(20*time.Millisecond), window.AllowedLateness(40*time.Millisecond), window.Early(window.AfterCount(2))).
		Sum("sums", func(v int64) int64 { return v }).To("out")
	plan, err := topo.Build()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		parts := eventtime.Generate(r, one, eventtime.TooLate)
		var first string
		for run := range 10 {
			c, err := newCluster(plan, Options{Instances: 1 + run%3, lazy: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range parts[0] {
				err = c.send("in", 0, record{time: rec.Time, key: []byte(rec.Key), value: binary.BigEndian.AppendUint64(nil, uint64(rec.Value))})
				for err == nil && r.IntN(3) == 0 {
					inst := c.instances[slices.IndexFunc(c.instances, func(i *instance) bool { return len(i.tasks) > 0 })]
					switch r.IntN(6) {
					case 0:
						c.o.Restore = Restore(r.IntN(2))
						err = c.crash(inst.n)
					case 1, 2:
						_, err = c.commitInstance(inst)
					default:
						_, err = inst.tasks[0].run(1 + r.IntN(8))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c.o.lazy = false
			if err := c.commit(); err != nil {
				t.Fatal(err)
			}
			all := fmt.Sprint(c.logs["out"].parts[0].records, c.late)
			if run == 0 {
				first = all
			} else if all != first {
				t.Fatalf("seed %d, run %d: other panes:\n%s\nfirst:\n%s", seed, run, all, first)
			}
		}
	}
}

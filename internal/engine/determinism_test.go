package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// What of the results does not depend on how the input was interleaved, cut into transactions and spread over instances
// (T2), and what does: four source partitions, a repartition, and windows of five seconds behind it.

const (
	outOf    = 3 * time.Second  // the out-of-orderness the generators allow
	lateness = 10 * time.Second // of the windows
	size     = 5 * time.Second
)

// tardiness is how late the records of a data set may be.
type tardiness int

const (
	inTime  tardiness = iota // never behind the watermark of their own partition
	late                     // behind it, and within the lateness of their window
	expired                  // beyond that as well
)

// dataset makes the records of four partitions, each in its order, and checks that they are as late as they should be.
func dataset(t *testing.T, r *rand.Rand, how tardiness) [4][]rec {
	var parts [4][]rec
	seen := inTime
	for p := range parts {
		now, w := int64(r.IntN(3000)), int64(-1<<62)
		for range 40 {
			now += int64(r.IntN(1500))
			back := int64(r.IntN(int(outOf.Milliseconds())))
			if how == late && r.IntN(4) == 0 {
				back = outOf.Milliseconds() + int64(r.IntN(int(lateness.Milliseconds())))
			}
			if how == expired && r.IntN(4) == 0 {
				back = outOf.Milliseconds() + int64(r.IntN(3*int(lateness.Milliseconds())))
			}
			ms := max(now-back, 1)
			last := (ms/size.Milliseconds()+1)*size.Milliseconds() - 1 // of its window
			switch {
			case w >= last+lateness.Milliseconds():
				if how != expired {
					continue
				}
				seen = expired
			case w >= last:
				if how == inTime {
					t.Fatal("a record is late")
				}
				seen = max(seen, late)
			}
			k := fmt.Sprint("k", r.IntN(4))
			parts[p] = append(parts[p], rec{topic: "in", partition: int32(p), key: fmt.Append(nil, p, "/", len(parts[p])), value: []byte(k), ms: ms})
			w = max(w, ms-outOf.Milliseconds()-1)
		}
		parts[p] = append(parts[p], rec{topic: "in", partition: int32(p), key: []byte("end"), value: []byte("end"), ms: 10_000_000})
	}
	if seen != how {
		t.Fatalf("the records are late to degree %d, want %d", seen, how)
	}
	return parts
}

// results are what one execution has made of a data set.
type results struct {
	onTime, final map[string]int64 // by key and window
	dropped       []string         // keys and times of late records
	late          int              // panes
}

// execute runs a data set in an order, and with transactions and instances, that the source of randomness chooses.
func execute(t *testing.T, parts [4][]rec, r *rand.Rand, opts ...window.Option) (out results) {
	top := func() *topology.Topology {
		top := topology.New("app")
		top.Stream[string, string]("in").Timestamps(nil, watermark.OutOfOrderness(outOf), watermark.IdleAfter(watermark.Never), watermark.Align(watermark.Never)).
			KeyBy("by-value", func(v string) string { return v }, topology.Partitions(2)).
			Window(window.Tumbling(size), append([]window.Option{window.AllowedLateness(lateness)}, opts...)...).Count("counts").To("out")
		return top
	}
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	simulate(t, embedded.Options{Topics: map[string]int{"in": 4, "out": 1}}, func(t *testing.T, s *scene) {
		change := func(c *engine.Config) {
			c.Workers = 1 + r.IntN(2)
			c.CommitInterval = time.Duration(10+r.IntN(100)) * time.Millisecond
			if r.IntN(2) == 0 {
				c.OverlayBytes = int64(2+r.IntN(20)) << 10
			}
		}
		nodes := []*node{s.start("a", top(), nil, change)}
		if r.IntN(3) == 0 {
			nodes = append(nodes, s.start("b", top(), nil, change))
		}
		var at [4]int
		chunk := 1 + r.IntN(20)
		for sent := 0; sent < total; {
			p := r.IntN(4)
			n := min(1+r.IntN(chunk), len(parts[p])-at[p])
			if n == 0 {
				continue
			}
			s.send(parts[p][at[p] : at[p]+n]...)
			at[p] += n
			sent += n
			s.pass(time.Duration(r.IntN(80)) * time.Millisecond)
			if n := nodes[0]; r.IntN(60) == 0 && n.settled() {
				n.crash()
				nodes[0] = s.start(n.name, top(), n.remains(), change)
			}
		}
		s.caughtUp("in")
		s.await("the end", func() bool {
			for _, part := range []int32{0, 1} {
				done := false
				for _, n := range nodes {
					w, ok := n.mark("counts", part)
					done = done || ok && w.W >= 9_000_000
				}
				if !done {
					return false
				}
			}
			return true
		})
		s.pass(time.Second)
		out = results{onTime: map[string]int64{}, final: map[string]int64{}}
		index := make(map[string]int)
		for _, p := range s.panes("out") {
			k := fmt.Sprint(p.key, p.bounds)
			if p.pane.Index == 0 && p.pane.Timing == window.TimingOnTime {
				if _, twice := out.onTime[k]; twice {
					t.Errorf("%s has two panes on time", k)
				}
				out.onTime[k] = p.n
			}
			if p.pane.Timing == window.TimingLate {
				out.late++
			}
			if i, ok := index[k]; !ok || p.pane.Index > i {
				index[k], out.final[k] = p.pane.Index, p.n
			}
		}
		for _, l := range s.read("app-late") {
			out.dropped = append(out.dropped, fmt.Sprintf("%s@%s", l.key, l.header("tm-late-time")))
		}
		var counted int64
		for _, n := range out.final {
			counted += n
		}
		if counted+int64(len(out.dropped)) != int64(total)-4 { // the end is still open
			t.Errorf("%d counted and %d late of %d", counted, len(out.dropped), total-4)
		}
	})
	slices.Sort(out.dropped)
	return out
}

// settled says whether the instance runs tasks. One that dies while it joins stays in the in-process broker's group.
func (n *node) settled() bool { return len(n.running()) > 0 }

// T2 of the engine: what must be equal is, and what may differ does, so that the test could see it.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	const executions = 3
	for _, c := range []struct {
		name                   string
		how                    tardiness
		opts                   []window.Option
		onTime, final, dropped bool // may differ, and does for some data set
	}{
		{"in time", inTime, nil, false, false, false},
		{"late", late, nil, true, false, false},
		{"expired, judged by the operator", expired, nil, true, true, true},
		{"expired, judged at the origin", expired, []window.Option{window.Origin()}, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var onTime, final, dropped int
			for seed := range uint64(4) {
				parts := dataset(t, rand.New(rand.NewPCG(seed, 1)), c.how)
				var first results
				for i := range uint64(executions) {
					got := execute(t, parts, rand.New(rand.NewPCG(seed, 100+i)), c.opts...)
					if i == 0 {
						first = got
						continue
					}
					differs := func(what string, count *int, may, equal bool) {
						if equal {
							return
						}
						*count++
						if !may {
							t.Errorf("seed %d, execution %d: %s differs\nfirst %+v\nnow   %+v", seed, i, what, first, got)
						}
					}
					differs("what is on time", &onTime, c.onTime, maps.Equal(first.onTime, got.onTime))
					differs("what is final", &final, c.final, maps.Equal(first.final, got.final))
					differs("what is dropped", &dropped, c.dropped, slices.Equal(first.dropped, got.dropped))
					if c.how == inTime && got.late > 0 {
						t.Errorf("seed %d, execution %d: %d late panes", seed, i, got.late)
					}
				}
			}
			for what, n := range map[string]struct {
				may bool
				n   int
			}{"on time": {c.onTime, onTime}, "final": {c.final, final}, "dropped": {c.dropped, dropped}} {
				if n.may && n.n == 0 {
					t.Errorf("what is %s never differed: the test shows nothing", what)
				}
			}
		})
	}
}

// T1 of the engine: a task with one input partition makes the same of it, pane by pane, wherever transactions end and
// whoever runs it.
func TestReplay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		recs := dataset(t, r, late)[0]
		for i := range recs {
			recs[i].key = recs[i].value
		}
		top := func() *topology.Topology {
			top := topology.New("app")
			top.Stream[string, string]("in").Timestamps(nil, watermark.OutOfOrderness(outOf), watermark.IdleAfter(watermark.Never)).
				Window(window.Tumbling(size), window.AllowedLateness(lateness), window.Early(window.AfterCount(2))).Count("counts").To("out")
			return top
		}
		var first []string
		for i := range 3 {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				change := func(c *engine.Config) { c.CommitInterval = time.Duration(10+r.IntN(100)) * time.Millisecond }
				n := s.start("a", top(), nil, change)
				for _, m := range recs {
					s.send(m)
					s.pass(time.Duration(r.IntN(40)) * time.Millisecond)
					if i > 0 && r.IntN(15) == 0 && n.settled() {
						n.crash()
						d := n.remains()
						if r.IntN(2) == 0 {
							d = nil
						}
						n = s.start("a", top(), d, change)
					}
				}
				s.caughtUp("in")
				n.awaitMark("counts", 0, 9_000_000)
				s.pass(500 * time.Millisecond)
				var got []string
				for _, k := range s.read("out") {
					got = append(got, fmt.Sprintf("%x %x %x", k.key, k.value, k.header(window.PaneHeader)))
				}
				if i == 0 {
					first = got
				} else if !slices.Equal(first, got) {
					t.Errorf("seed %d: %d panes, %d at first\nfirst %v\nnow   %v", seed, len(got), len(first), first, got)
				}
			})
		}
	}
}

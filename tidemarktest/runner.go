package tidemarktest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

// RunHistories runs the text files that the pattern matches, each as a subtest, against the scenarios they name; find
// looks them up.
//
// A history is a text file with header lines and steps:
//
//	# what it shows
//	topology: tumbling        what find knows as a Scenario
//	same: all                 or finals, see below
//	partitions: 1 only because REASON     instead of 1 and 4
//	times: utc                print instants, not ms
//	start: 2024-03-01T00:00:00Z           where the clock stands, instead of 1970
//	errors: dead-letter       instead of fail
//
//	emit in a 1 @3            TOPIC [PARTITION or *] KEY VALUE @TIME [HEADER=VALUE...]
//	advance 10s               move the clock
//	idle in 0                 a partition falls silent
//	commit
//	crash                     [INSTANCE]
//	rebalance
//	restore changelog         or local: how tasks that are opened later get their state
//	output                    print what was committed since: records, late records, dead letters
//	  out a[0,10)=1 ON_TIME#0 last @3
//	store counts              print the committed rows of a store
//	watermarks                print the watermark of every operator in every task
//
// A pane is TOPIC KEY[START,END)=VALUE TIMING#INDEX, with "last" if it is, and the time of its record. In retracting mode
// -U, +U and -D stand before the key. Expected text is indented; with rewrite set, the files get what the first execution
// prints.
//
// Every history is executed with 1 and 4 partitions and 1 to 3 instances; with a crash and with a rebalance after every
// single step, restored in both ways; and with firings spread over many transactions. With one input partition per task
// all of them print the same text. Across partitions and instances, same: all demands the same text for every key, and
// same: finals only the same final value of every window: early panes, the numbers of panes and what is late may differ.
// A history with same: all that runs with several partition counts must therefore not send records that are late by
// their own partition, and one with same: finals none that are too late.
func RunHistories(t *testing.T, pattern string, rewrite bool, find func(name string) (*Scenario, error)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("tidemarktest: no histories %s: %v", pattern, err)
	}
	var runs atomic.Int64
	t.Cleanup(func() { t.Logf("%d histories, %d executions", len(files), runs.Load()) })
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			h, err := readHistory(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := find(h.topology)
			if err != nil {
				t.Fatalf("%s: topology %q: %v", file, h.topology, err)
			}
			for _, f := range s.Forms {
				if f.err != nil {
					t.Fatal(f.err)
				}
			}
			n, err := s.check(h, rewrite)
			runs.Add(int64(n))
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		})
	}
}

// variant is one way to execute a history.
type variant struct {
	partitions, instances int
	at                    int // the step behind which something happens, -1 for none
	crash                 bool
	restore               Restore
	firings               int
}

func (v variant) String() string {
	s := fmt.Sprintf("%d partitions, %d instances", v.partitions, v.instances)
	if v.at >= 0 {
		s += map[bool]string{true: ", crash", false: ", rebalance"}[v.crash] + fmt.Sprintf(" after step %d, restore %s", v.at+1, v.restore)
	}
	if v.firings > 0 {
		s += fmt.Sprintf(", %d firings per transaction", v.firings)
	}
	return s
}

// variants lists all ways to execute a history but the first.
func (h *history) variants() []variant {
	var list []variant
	for _, p := range h.counts {
		for i := 1; i <= 3; i++ {
			list = append(list, variant{partitions: p, instances: i, at: -1})
			for at := range h.steps {
				for _, crash := range []bool{true, false} {
					for _, way := range []Restore{Local, Changelog} {
						list = append(list, variant{p, i, at, crash, way, 0})
					}
				}
			}
		}
		list = append(list, variant{partitions: p, instances: 1, at: -1, firings: 1})
		for at := range h.steps {
			list = append(list, variant{p, 1, at, true, Changelog, 1})
		}
	}
	return list[1:]
}

// check executes a history in every way and returns how many times.
func (s *Scenario) check(h *history, rewrite bool) (int, error) {
	risk, err := s.judge(h)
	if err != nil {
		return 0, err
	}
	plan, err := s.Build().Build()
	if err != nil {
		return 0, err
	}
	first := variant{partitions: h.counts[0], instances: 1, at: -1}
	base, err := s.execute(h, plan, first)
	if err != nil {
		return 1, err
	}
	if rewrite {
		var blocks [][]string
		for _, b := range base.blocks {
			blocks = append(blocks, texts(b))
		}
		if err := h.rewrite(blocks); err != nil {
			return 1, err
		}
	} else if err := h.compare(base); err != nil {
		return 1, err
	}
	list := h.variants()
	for i, v := range list {
		r, err := s.execute(h, plan, v)
		if err != nil {
			return i + 2, fmt.Errorf("with %v: %w", v, err)
		}
		if err := s.same(base, r, plan, first, v, risk); err != nil {
			return i + 2, fmt.Errorf("with %v: %w", v, err)
		}
	}
	return len(list) + 1, nil
}

// risk is what the records of a history leave to chance when they interleave in another way, or are committed at other
// moments: nothing, when panes come, or what is refused.
type risk int

const (
	noRisk risk = iota
	someLate
	someExpired
)

// judge rejects a history that promises more than its records allow.
func (s *Scenario) judge(h *history) (risk, error) {
	r := noRisk
	for _, p := range h.counts {
		late, expired, err := s.ownLate(h, p)
		if err != nil {
			return r, err
		}
		if late != nil {
			r = max(r, someLate)
		}
		if expired != nil {
			r = someExpired
		}
		switch {
		case h.confined:
		case late != nil && !h.finals:
			return r, fmt.Errorf("line %d: with %d partitions the record is late by its own partition: same: all cannot hold", late.line+1, p)
		case expired != nil:
			return r, fmt.Errorf("line %d: with %d partitions the record is too late by its own partition: whether it is refused depends on the others", expired.line+1, p)
		}
	}
	return r, nil
}

// execute runs a history once.
func (s *Scenario) execute(h *history, plan *topology.Plan, v variant) (*run, error) {
	r, err := newRun(h, s, plan, Options{Partitions: v.partitions, Instances: v.instances, firings: v.firings})
	if err != nil {
		return nil, err
	}
	for i := range h.steps {
		if err := r.step(&h.steps[i]); err != nil {
			return nil, err
		}
		if i == v.at {
			if err := r.disturb(v); err != nil {
				return nil, err
			}
		}
	}
	// What is left over counts for the final values.
	if r.c.err == nil {
		if err := r.c.commit(); err != nil && r.c.err == nil {
			return nil, err
		}
	}
	r.rest, err = r.output()
	return r, err
}

// disturb lets happen what a variant asks for. The instance that crashes is one that has tasks.
func (r *run) disturb(v variant) error {
	c := r.c
	way := c.o.Restore
	defer func() { c.o.Restore = way }()
	c.o.Restore = v.restore
	if !v.crash {
		if c.err != nil {
			return nil
		}
		return c.alive(c.rebalance)
	}
	n := 0
	for _, s := range c.subs {
		n += s.tasks
	}
	n = v.at % n
	for _, inst := range c.instances {
		if n -= len(inst.tasks); n < 0 {
			c.err = nil
			if err := c.crash(inst.n); err != nil && c.err == nil {
				return err
			}
			return nil
		}
	}
	return nil
}

// compare holds an execution against the expected text.
func (h *history) compare(r *run) error {
	n := 0
	for i := range h.steps {
		st := &h.steps[i]
		if !st.prints {
			continue
		}
		if got := texts(r.blocks[n]); !slices.Equal(got, st.want) {
			return fmt.Errorf("line %d: %s prints\n  %s\nwant\n  %s", st.line+1, st.verb, strings.Join(got, "\n  "), strings.Join(st.want, "\n  "))
		}
		n++
	}
	return nil
}

// same compares an execution with the first one as far as the history promises.
func (s *Scenario) same(base, r *run, plan *topology.Plan, first, v variant, risk risk) error {
	disturbed := v.at >= 0
	one := oneInput(plan)
	// A rebalance commits, and so does a firing that does not fit: the tasks behind a repartition then hear of the
	// watermark earlier. A crash changes nothing: what is processed again is committed when it would have been.
	shifted := !one && (disturbed && !v.crash || v.firings > 0)
	exact := v.partitions == first.partitions && (one || v.partitions == 1 && (!shifted || risk == noRisk))
	if !exact && risk == someExpired {
		return nil // only a confined history has such records
	}
	if !maps.Equal(base.finals, r.finals) {
		return fmt.Errorf("final values\n  %v\nwant\n  %v", r.finals, base.finals)
	}
	if s.Clocked && (disturbed || v.firings > 0) || !exact && base.h.finals {
		return nil
	}
	if v.firings > 0 {
		return whole(base, r) // commits come earlier than the history has them
	}
	h := base.h
	n := 0
	for i := range h.steps {
		st := &h.steps[i]
		if !st.prints {
			continue
		}
		a, b := base.blocks[n], r.blocks[n]
		n++
		if !exact && st.verb == "watermarks" {
			continue
		}
		order := sorted
		if exact && v.instances == 1 && !disturbed {
			order = texts
		}
		if want, got := order(a), order(b); !slices.Equal(want, got) {
			return fmt.Errorf("line %d: %s prints\n  %s\nwant\n  %s", st.line+1, st.verb, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	return nil
}

// whole compares everything that two executions have committed, whenever they did.
func whole(base, r *run) error {
	all := func(r *run) []string {
		var list []line
		n := 0
		for i := range r.h.steps {
			if st := &r.h.steps[i]; st.prints {
				if st.verb == "output" {
					list = append(list, r.blocks[n]...)
				}
				n++
			}
		}
		return sorted(append(list, r.rest...))
	}
	if want, got := all(base), all(r); !slices.Equal(want, got) {
		return fmt.Errorf("in all it prints\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return nil
}

// oneInput reports whether every task reads one partition only, so that nothing can interleave.
func oneInput(plan *topology.Plan) bool {
	for _, s := range plan.Subs {
		for _, src := range s.Sources {
			if src.Repartition != "" {
				return false
			}
		}
		if len(s.Sources) != 1 {
			return false
		}
	}
	return true
}

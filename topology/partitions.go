package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrPartitionMismatch is wrapped by the errors of CheckPartitions about counts that do not fit together.
var ErrPartitionMismatch = errors.New("partition counts do not match")

// ErrNoTopic is wrapped by the errors of CheckPartitions about topics without a known count.
var ErrNoTopic = errors.New("topic does not exist")

// Counts are what follows from a plan and the partition counts of its input topics.
type Counts struct {
	Subs         map[string]int // tasks, by sub-topology id
	Repartitions map[string]int // partitions, by operator id
}

// group is the set of a sub-topology's sources whose records meet in operators that keep state by key.
type group struct {
	operators []string // stateful operators, by name
	sources   []int    // indexes into Sub.Sources, ascending
}

// CheckPartitions derives the number of tasks of every sub-topology and of partitions of every repartition topic.
// counts holds the partition counts of the topics the plan reads. Topics that meet below one stateful operator must
// have the same count; a repartition topic takes the count of the topics it meets, else the declared one, else the
// largest of the sub-topologies that write to it. All errors are reported at once.
func CheckPartitions(p *Plan, counts map[string]int) (Counts, error) {
	c := counter{
		counts: counts, declared: map[string]int{}, upstream: map[string]int{},
		out: Counts{Subs: map[string]int{}, Repartitions: map[string]int{}},
	}
	for _, s := range p.Subs {
		for _, k := range s.Sinks {
			if k.Repartition != "" {
				c.declared[k.Repartition] = k.Partitions
			}
		}
	}
	// One pass suffices if all writers come first. Counts only grow, up to the largest given, so it ends.
	for before := -1; before != c.sum(); {
		before = c.sum()
		c.errs = nil
		for _, s := range p.Subs {
			c.sub(s)
		}
	}
	return c.out, errors.Join(c.errs...)
}

// counter holds the counts while they are being derived.
type counter struct {
	counts   map[string]int // given, by topic
	declared map[string]int // by repartition; 0: not declared
	upstream map[string]int // largest task count of the writers of a repartition
	out      Counts
	errs     []error
}

func (c *counter) sum() int {
	n := 0
	for _, tasks := range c.out.Subs {
		n += tasks
	}
	return n
}

// sub derives the counts of one sub-topology from what is known so far.
func (c *counter) sub(s *Sub) {
	have := make([]int, len(s.Sources))
	for i, src := range s.Sources {
		if src.Topic == "" {
			continue
		}
		if have[i] = c.counts[src.Topic]; have[i] <= 0 {
			c.errs = append(c.errs, fmt.Errorf("topology: source(%s): %w", src.Topic, ErrNoTopic))
		}
	}
	for _, g := range s.groups {
		if err := g.settle(s, have, c.declared, c.upstream); err != nil {
			c.errs = append(c.errs, err)
		}
	}
	tasks := 0
	for i, src := range s.Sources {
		if src.Repartition != "" {
			c.out.Repartitions[src.Repartition] = have[i]
		}
		tasks = max(tasks, have[i])
	}
	c.out.Subs[s.ID] = tasks
	for _, k := range s.Sinks {
		if k.Repartition != "" {
			c.upstream[k.Repartition] = max(c.upstream[k.Repartition], tasks)
		}
	}
}

// settle finds the count that all sources of the group have, and gives it to the repartition topics among them.
func (g group) settle(s *Sub, have []int, declared, upstream map[string]int) error {
	type fixed struct {
		name  string
		count int
	}
	var want []fixed
	largest := 0
	for _, i := range g.sources {
		switch src := s.Sources[i]; {
		case src.Topic != "" && have[i] > 0:
			want = append(want, fixed{"topic " + src.Topic, have[i]})
		case src.Repartition != "" && declared[src.Repartition] > 0:
			want = append(want, fixed{"repartition " + src.Repartition, declared[src.Repartition]})
		case src.Repartition != "":
			largest = max(largest, upstream[src.Repartition])
		}
	}
	count := largest
	if len(want) > 0 {
		count = want[0].count
	}
	for _, i := range g.sources {
		if s.Sources[i].Repartition != "" {
			have[i] = count
		}
	}
	if !slices.ContainsFunc(want, func(f fixed) bool { return f.count != count }) {
		return nil
	}
	slices.SortFunc(want, func(a, b fixed) int { return cmp.Compare(a.name, b.name) })
	names := make([]string, len(want))
	for i, f := range want {
		names[i] = fmt.Sprintf("%s has %d", f.name, f.count)
	}
	return fmt.Errorf("topology: %s: %w: %s", strings.Join(g.operators, ", "), ErrPartitionMismatch, strings.Join(names, ", "))
}

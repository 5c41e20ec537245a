package tidemarktest

import (
	"fmt"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

// cluster is the app and all it runs on. It is the part of the driver that knows no types.
type cluster struct {
	o         Options
	plan      *topology.Plan
	subs      []*sub
	logs      map[string]*log // topics of the user, by name
	cuts      map[string]*log // repartition topics, by operator id
	instances []*instance
	commits   map[processor.TaskID]*commit
	turn      int // counts crashes and rebalances: who gets a task next
	now       int64
	late      []LateRecord
	dead      []DeadLetter
	err       error // what ended the app
}

// sub is a sub-topology with its topics.
type sub struct {
	*topology.Sub
	tasks      int
	sources    []*log
	sinks      []*log
	changelogs []changes // by store; nil for one without
}

// commit is what the last commit of a task stands for: its progress record and its input offsets.
type commit struct {
	seq      uint64
	offsets  []int64
	ends     []int64  // of the changelogs, by store
	floors   [][]byte // below which rows have expired, by store
	progress []byte
	clocks   []byte
}

// instance is one member of the group, with its one worker.
type instance struct {
	n     int
	tasks []*task // in the order of the plan
	disks map[processor.TaskID]*disk
	txn   transaction
	full  bool // it commits before it goes on
}

func newCluster(plan *topology.Plan, o Options) (*cluster, error) {
	o = o.withDefaults()
	c := &cluster{
		o: o, plan: plan, logs: map[string]*log{}, cuts: map[string]*log{}, commits: map[processor.TaskID]*commit{},
		now: o.Start.UnixMilli(),
	}
	counts := map[string]int{}
	count := func(topic string) int {
		if n := o.Topics[topic]; n > 0 {
			return n
		}
		return o.Partitions
	}
	for _, s := range plan.Subs {
		for _, src := range s.Sources {
			if src.Topic != "" {
				counts[src.Topic] = count(src.Topic)
			}
		}
	}
	n, err := topology.CheckPartitions(plan, counts)
	if err != nil {
		return nil, err
	}
	find := func(topic, repartition string) *log {
		set, name, size := c.logs, topic, count(topic)
		if repartition != "" {
			set, name, size = c.cuts, repartition, n.Repartitions[repartition]
		}
		if set[name] == nil {
			set[name] = newLog(name, size)
		}
		return set[name]
	}
	for _, ps := range plan.Subs {
		s := &sub{Sub: ps, tasks: n.Subs[ps.ID], changelogs: make([]changes, len(ps.Stores))}
		for _, src := range ps.Sources {
			s.sources = append(s.sources, find(src.Topic, src.Repartition))
		}
		for _, k := range ps.Sinks {
			s.sinks = append(s.sinks, find(k.Topic, k.Repartition))
		}
		for i, spec := range ps.Stores {
			if spec.Changelog {
				s.changelogs[i] = make(changes, s.tasks)
			}
		}
		c.subs = append(c.subs, s)
	}
	for i := range o.Instances {
		c.instances = append(c.instances, &instance{n: i, disks: map[processor.TaskID]*disk{}})
	}
	return c, c.assign(nil)
}

// owner returns the instance that a task belongs to: neighbours are spread, and every turn moves them on.
func (c *cluster) owner(sub int, partition int32) *instance {
	return c.instances[(sub+int(partition)+c.turn)%len(c.instances)]
}

// assign gives every task that is not running to its owner, or to another instance if that one is down.
func (c *cluster) assign(down *instance) error {
	for i, s := range c.subs {
		for p := range int32(s.tasks) {
			id := processor.TaskID{Sub: s.ID, Partition: p}
			if c.find(id) != nil {
				continue
			}
			inst := c.owner(i, p)
			if inst == down && len(c.instances) > 1 {
				inst = c.instances[(inst.n+1)%len(c.instances)]
			}
			if err := c.open(inst, s, id, i); err != nil {
				return fmt.Errorf("tidemarktest: open task %s: %w", id, err)
			}
		}
	}
	return nil
}

// find returns a running task.
func (c *cluster) find(id processor.TaskID) *task {
	for _, inst := range c.instances {
		for _, t := range inst.tasks {
			if t.id == id {
				return t
			}
		}
	}
	return nil
}

// crash ends an instance: what it has not committed is lost. Its tasks are opened elsewhere, or by itself if it is the
// only one.
func (c *cluster) crash(n int) error {
	inst := c.instances[n]
	inst.tasks, inst.txn, inst.full = nil, transaction{}, false
	c.turn++
	if err := c.assign(inst); err != nil {
		return err
	}
	return c.settle()
}

// rebalance commits what every instance has and moves tasks to other instances. Those that stay go on.
func (c *cluster) rebalance() error {
	if err := c.commit(); err != nil {
		return err
	}
	c.turn++
	for _, inst := range c.instances {
		kept := inst.tasks[:0]
		for _, t := range inst.tasks {
			if len(c.instances) > 1 && c.owner(t.order, t.id.Partition) == inst {
				kept = append(kept, t)
				continue
			}
			if err := t.close(); err != nil {
				return err
			}
		}
		clear(inst.tasks[len(kept):])
		inst.tasks = kept
	}
	if err := c.assign(nil); err != nil {
		return err
	}
	return c.settle()
}

package tidemarktest

import "math"

// listen finds out which of a task's source partitions are silent. A partition here is read to its end as soon as the
// task has no record of it left, so a look at it is a proof.
func (t *task) listen() {
	for _, in := range t.inputs {
		if !in.timed {
			continue
		}
		now := t.c.now
		waiting := in.head() != nil
		in.silence.Buffered(now, waiting)
		if waiting {
			continue
		}
		if len(in.from.records) == 0 {
			in.silence.Empty(now)
		}
		idle, next := in.silence.Idle(now)
		if !idle && next <= now {
			in.silence.Probed(now, true)
			idle, _ = in.silence.Idle(now)
		}
		if idle || in.from.silent {
			t.proc.SetIdle(in.source)
		}
	}
}

// silentAt returns when the next partition may turn out to be silent.
func (t *task) silentAt() int64 {
	at := int64(math.MaxInt64)
	for _, in := range t.inputs {
		if !in.timed || in.head() != nil || t.proc.Idle(in.source) {
			continue
		}
		if idle, next := in.silence.Idle(t.c.now); !idle {
			at = min(at, next)
		}
	}
	return at
}

// advance moves the clock by d ms. It stops wherever something is due: a deadline, a silent partition, a commit.
func (c *cluster) advance(d int64) error {
	target := c.now + d
	interval := c.o.CommitInterval.Milliseconds()
	for {
		next := target
		for _, inst := range c.instances {
			due := int64(math.MaxInt64)
			if inst.waiting() {
				due = c.now + 1
			}
			for _, t := range inst.tasks {
				if t.sub.Timed {
					due = min(due, t.proc.NextTick())
					next = min(next, max(t.silentAt(), c.now))
				}
			}
			if due < target {
				// What is due happens at a commit.
				due = max(due, c.now+1)
				next = min(next, due+(interval-due%interval)%interval)
			}
		}
		c.now = next
		if err := c.settle(); err != nil {
			return err
		}
		if c.now%interval == 0 {
			if err := c.commit(); err != nil {
				return err
			}
		}
		if c.now >= target {
			return nil
		}
	}
}

package tidemarktest

import (
	"fmt"
	"time"

	"github.com/tidemark/tidemark/topology"
)

// TB is the part of testing.TB that a Driver needs.
type TB interface {
	// Helper marks the calling function as one whose caller an error is about.
	Helper()
	// Fatalf reports an error and ends the test.
	Fatalf(format string, args ...any)
}

// Driver runs one topology.
type Driver struct {
	tb TB
	c  *cluster
}

// New builds the topology and starts it. What goes wrong, here and in the methods of the driver, ends the test; with a
// nil tb it panics, which is for examples and fuzzing.
func New(tb TB, t *topology.Topology, o Options) *Driver {
	d := &Driver{tb: tb}
	d.helper()
	plan, err := t.Build()
	if err != nil {
		d.fatal(err)
	}
	d.c, err = newCluster(plan, o)
	if err != nil {
		d.fatal(err)
	}
	d.check(d.c.settle())
	return d
}

func (d *Driver) helper() {
	if d.tb != nil {
		d.tb.Helper()
	}
}

func (d *Driver) fatal(err error) {
	d.helper()
	if d.tb == nil {
		panic(err)
	}
	d.tb.Fatalf("%v", err)
}

func (d *Driver) check(err error) {
	d.helper()
	if err != nil {
		d.fatal(err)
	}
}

// Commit commits what has been processed, and goes on until what that has put into repartition topics, and into topics
// the topology reads, is processed and committed as well.
func (d *Driver) Commit() {
	d.helper()
	d.check(d.c.alive(d.c.commit))
}

// Advance moves the clock. On the way it makes the commits that are due, lets triggers and timers of processing time
// fire, and notices partitions that have been silent for long enough.
func (d *Driver) Advance(by time.Duration) {
	d.helper()
	if by < 0 {
		d.fatal(fmt.Errorf("tidemarktest: advance by %v: the clock does not go back", by))
	}
	d.check(d.c.alive(func() error { return d.c.advance(by.Milliseconds()) }))
}

// Now returns where the clock stands.
func (d *Driver) Now() time.Time { return time.UnixMilli(d.c.now).UTC() }

// Idle declares a partition of an input topic silent, as if its time-out had passed: operators do not wait for it until
// its next record.
func (d *Driver) Idle(topic string, partition int) {
	d.helper()
	d.check(d.c.alive(func() error { return d.c.idle(topic, partition) }))
}

func (c *cluster) idle(topic string, partition int) error {
	l := c.logs[topic]
	if l == nil || partition < 0 || partition >= len(l.parts) {
		return fmt.Errorf("tidemarktest: idle: no partition %d of topic %q", partition, topic)
	}
	l.parts[partition].silent = true
	return c.settle()
}

// Crash ends an instance, numbered from 0. What it has not committed is lost; its tasks are opened on the next instance,
// or on the same one if there is no other, from the last commit.
func (d *Driver) Crash(instance int) {
	d.helper()
	if instance < 0 || instance >= len(d.c.instances) {
		d.fatal(fmt.Errorf("tidemarktest: crash: no instance %d", instance))
	}
	d.check(d.c.alive(func() error { return d.c.crash(instance) }))
}

// Rebalance commits and moves tasks between the instances. With one instance, it loses its tasks and gets them back.
func (d *Driver) Rebalance() {
	d.helper()
	d.check(d.c.alive(d.c.rebalance))
}

// RestoreBy says how tasks get their state back from now on.
func (d *Driver) RestoreBy(r Restore) { d.c.o.Restore = r }

// Err returns what has ended the app: a record that could not be processed. Options.DeadLetter avoids that.
func (d *Driver) Err() error { return d.c.err }

// alive carries out a step unless the app has ended, and notes if the step ends it.
func (c *cluster) alive(step func() error) error {
	if c.err != nil {
		return fmt.Errorf("tidemarktest: the app has ended: %w", c.err)
	}
	if err := step(); err != nil {
		return c.fail(err)
	}
	return nil
}

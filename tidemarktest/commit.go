package tidemarktest

import (
	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// settle lets every task process what is there.
func (c *cluster) settle() error {
	if c.o.lazy {
		return nil
	}
	for again := true; again; {
		again = false
		for _, inst := range c.instances {
			did, err := c.runInstance(inst)
			if err != nil {
				return err
			}
			again = again || did
		}
	}
	return nil
}

func (c *cluster) runInstance(inst *instance) (bool, error) {
	any := false
	for _, t := range inst.tasks {
		did, err := t.run(-1)
		if err != nil {
			return any, c.fail(err)
		}
		any = any || did
		if inst.full {
			if _, err := c.commitInstance(inst); err != nil {
				return any, err
			}
		}
	}
	return any, nil
}

// fail notes what has ended the app.
func (c *cluster) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}

// commit lets every instance commit, and goes on until what was committed has been read and committed in turn.
func (c *cluster) commit() error {
	for again := true; again; {
		if err := c.settle(); err != nil {
			return err
		}
		again = false
		for _, inst := range c.instances {
			if !c.o.lazy {
				if _, err := c.runInstance(inst); err != nil {
					return err
				}
			}
			did, err := c.commitInstance(inst)
			if err != nil {
				return err
			}
			again = again || did
		}
	}
	return nil
}

// waiting reports whether an instance has something to commit.
func (inst *instance) waiting() bool {
	for _, t := range inst.tasks {
		if t.dirty || t.announces() {
			return true
		}
	}
	return false
}

// announces reports whether the task has something to tell the readers of its repartition topics.
func (t *task) announces() bool {
	if !t.sub.Timed {
		return false
	}
	t.out = t.proc.Outgoing(t.out[:0])
	for i, o := range t.out {
		if t.told[i].Due(t.c.now, o.W, o.State, announcing) {
			return true
		}
	}
	return false
}

// commitInstance commits one transaction, and reports whether there was anything in it.
func (c *cluster) commitInstance(inst *instance) (bool, error) {
	inst.full = false
	for _, t := range inst.tasks {
		if !t.sub.Timed || t.proc.NextTick() > c.now {
			continue
		}
		before := t.proc.Effects()
		if err := t.proc.Tick(c.now); err != nil {
			return false, c.fail(err)
		}
		t.dirty = t.dirty || t.proc.Effects() != before
	}
	var sealed []*sealed
	for _, t := range inst.tasks {
		if t.announces() {
			t.dirty = true
		}
		if !t.dirty {
			continue
		}
		s, err := t.seal()
		if err != nil {
			return false, c.fail(err)
		}
		sealed = append(sealed, s)
	}
	if len(sealed) == 0 {
		return false, nil
	}
	for i, s := range sealed {
		if len(s.t.told) > 0 && s.told == nil {
			c.announce(inst, sealed[i:])
		}
	}
	for _, s := range inst.txn.sends {
		s.to.add(s.partition, s.record)
	}
	c.late = append(c.late, inst.txn.late...)
	c.dead = append(c.dead, inst.txn.dead...)
	inst.txn = transaction{}
	for _, s := range sealed {
		if err := s.apply(); err != nil {
			return false, c.fail(err)
		}
	}
	return true, nil
}

// sealed is a task's part of a transaction.
type sealed struct {
	t       *task
	next    commit
	changes []store.Change
	told    []watermark.Broadcast
}

// seal encodes what a task has changed.
func (t *task) seal() (*sealed, error) {
	s := &sealed{t: t, next: commit{seq: t.last.seq + 1, offsets: make([]int64, len(t.sub.sources)), ends: make([]int64, len(t.sub.Stores))}}
	if t.sub.Timed {
		if err := t.proc.Tick(t.c.now); err != nil {
			return nil, err
		}
	}
	if err := t.proc.Flush(); err != nil {
		return nil, err
	}
	copy(s.next.ends, t.last.ends)
	if t.state != nil {
		err := t.state.Seal(func(ch store.Change) error {
			if t.sub.changelogs[ch.Store] != nil {
				s.changes = append(s.changes, ch)
				s.next.ends[ch.Store]++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i, spec := range t.sub.Stores {
		var floor []byte
		if spec.Kind.Trimmed() {
			floor = t.state.Floor(i)
		}
		s.next.floors = append(s.next.floors, floor)
	}
	for _, in := range t.inputs {
		s.next.offsets[in.source] = in.position
	}
	p := changelog.Progress{Seq: s.next.seq, Writer: uint64(t.inst.n), Time: t.c.now, W: changelog.NoWatermark}
	if t.sub.Timed {
		s.next.clocks = t.proc.AppendClocks(nil)
		p.SetSection(changelog.SectionClocks, s.next.clocks)
	}
	for i, spec := range t.sub.Stores {
		p.Ends = append(p.Ends, changelog.StoreEnd{Store: spec.ID, End: s.next.ends[i]})
	}
	var err error
	s.next.progress, err = p.Append(nil)
	return s, err
}

// announce adds the control records of the tasks of one sub-topology behind everything else in the transaction.
func (c *cluster) announce(inst *instance, list []*sealed) {
	of := list[0].t.sub
	var controls []watermark.Control
	var sinks []int
	for _, s := range list {
		t := s.t
		if t.sub != of {
			continue
		}
		s.told = append([]watermark.Broadcast(nil), t.told...)
		t.out = t.proc.Outgoing(t.out[:0])
		if controls == nil {
			controls, sinks = make([]watermark.Control, len(t.out)), make([]int, len(t.out))
		}
		for i, o := range t.out {
			sinks[i] = o.Sink
			if t.told[i].Due(c.now, o.W, o.State, announcing) {
				s.told[i].Sent(c.now, o.W, o.State)
				controls[i].Entries = append(controls[i].Entries, watermark.Entry{
					Task: uint32(t.id.Partition), State: o.State, W: o.W, Seq: s.next.seq,
				})
			}
		}
	}
	mark := []processor.Header{{Key: watermark.ControlHeader, Value: []byte(watermark.ControlValue)}}
	for i := range controls {
		k := &controls[i]
		if len(k.Entries) == 0 {
			continue
		}
		k.Kind, k.Writer, k.Tasks = watermark.KindWatermark, watermark.WriterID(of.Sinks[sinks[i]].Repartition), uint32(of.tasks)
		to := of.sinks[sinks[i]]
		value := k.Append(nil)
		for p := range to.parts {
			inst.txn.sends = append(inst.txn.sends, send{to, int32(p), record{c.now, nil, value, mark}})
		}
	}
}

// persistEvery is how many commits of a task reach its database at a time: what is not yet there is what a local restore
// takes from the changelogs.
const persistEvery = 3

// apply makes a sealed generation the last commit.
func (s *sealed) apply() error {
	t := s.t
	for _, ch := range s.changes {
		l := t.sub.changelogs[ch.Store]
		l[t.id.Partition] = append(l[t.id.Partition], ch)
	}
	if t.state != nil {
		if err := t.state.Commit(s.next.progress, t.c.now); err != nil {
			return err
		}
		if s.next.seq%persistEvery == 0 {
			if err := t.state.Persist(t.c.now, true); err != nil {
				return err
			}
		}
	}
	next := s.next
	t.last, t.c.commits[t.id] = &next, &next
	if s.told != nil {
		t.told = s.told
	}
	for _, in := range t.inputs {
		in.committed = s.next.offsets[in.source]
	}
	t.dirty = false
	return nil
}

package tidemarktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/watermark"
)

// task is one sub-topology on one partition.
type task struct {
	c      *cluster
	id     processor.TaskID
	sub    *sub
	order  int // of the sub-topology in the plan
	inst   *instance
	inputs []*input

	state  *store.State
	proc   *processor.Task
	last   *commit
	told   []watermark.Broadcast
	out    []processor.Outgoing
	dirty  bool
	poison map[place]error
}

// place is a record of one input.
type place struct {
	source int
	offset int64
}

// input is one partition that a task reads.
type input struct {
	source    int
	from      *partition
	topic     string
	internal  bool
	timed     bool // a topic of the user whose time is asked for
	position  int64
	silence   watermark.Idleness
	committed int64
}

func (in *input) head() *record {
	if in.position >= int64(len(in.from.records)) {
		return nil
	}
	return &in.from.records[in.position]
}

// open makes a task on an instance and brings its state to the last commit.
func (c *cluster) open(inst *instance, s *sub, id processor.TaskID, order int) error {
	t := &task{c: c, id: id, sub: s, order: order, inst: inst, last: c.commits[id]}
	if t.last == nil {
		t.last = &commit{offsets: make([]int64, len(s.sources)), ends: make([]int64, len(s.Stores))}
	}
	for i, l := range s.sources {
		if int(id.Partition) >= len(l.parts) {
			continue
		}
		in := &input{
			source: i, from: &l.parts[id.Partition], topic: l.name, internal: s.Sources[i].Repartition != "",
			timed: s.Sources[i].Time != nil, position: t.last.offsets[i], committed: t.last.offsets[i],
		}
		if in.internal {
			in.topic += "-repartition"
		}
		t.inputs = append(t.inputs, in)
	}
	if err := t.restore(); err != nil {
		return err
	}
	if err := t.build(); err != nil {
		return err
	}
	inst.tasks = append(inst.tasks, t)
	slices.SortFunc(inst.tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id.Partition, b.id.Partition))
	})
	return nil
}

// build makes the operators anew over the state of the last commit.
func (t *task) build() error {
	proc, err := t.sub.NewTask(processor.Env{
		Task: t.id, Output: t, State: t.state, Clocks: t.last.clocks, Now: func() int64 { return t.c.now },
	})
	if err != nil {
		return err
	}
	t.proc = proc
	if !t.sub.Timed {
		return nil
	}
	if t.told == nil {
		t.told = make([]watermark.Broadcast, len(proc.Outgoing(nil)))
	}
	proc.Start(t.c.now)
	for _, in := range t.inputs {
		if in.timed {
			in.silence = watermark.NewIdleness(t.c.now, t.sub.Sources[in.source].Time.IdleAfter)
			if proc.WasIdle(in.source) {
				in.silence.Resume()
			}
		}
	}
	return nil
}

// abort takes back what the task has done since its last commit.
func (t *task) abort() error {
	if err := t.proc.Pause(); err != nil {
		return err
	}
	if t.state != nil {
		t.state.Rollback()
	}
	if err := t.proc.Close(); err != nil {
		return err
	}
	t.dirty = false
	for _, in := range t.inputs {
		in.position = in.committed
	}
	return t.build()
}

// close gives the task up after a commit.
func (t *task) close() error {
	err := t.proc.Close()
	if t.state != nil {
		t.state.Rollback()
		err = errors.Join(err, t.state.Close())
	}
	return err
}

// pick returns the input whose record comes next: one with a control record at its head, else the one with the lowest
// timestamp.
func (t *task) pick() *input {
	var best *input
	for _, in := range t.inputs {
		r := in.head()
		switch {
		case r == nil:
			continue
		case in.internal && r.isControl():
			return in
		case t.proc.TooFarAhead(in.source):
			continue
		}
		if best == nil || r.time < best.head().time {
			best = in
		}
	}
	return best
}

// run processes up to n records; a negative n means all there are. It reports whether it has done anything.
func (t *task) run(n int) (bool, error) {
	did := false
	if t.sub.Timed {
		t.proc.SetNow(t.c.now)
	}
	for {
		t.listen()
		if t.proc.Moved() {
			did = true
			if ok, err := t.advance(); err != nil || !ok {
				return did, err
			}
		}
		in := t.pick()
		if in == nil || n == 0 {
			return did, nil
		}
		did = true
		n--
		r := in.head()
		if in.timed {
			in.silence.Record(t.c.now)
			if in.position == int64(len(in.from.records))-1 {
				in.silence.Probed(t.c.now, true)
			}
		}
		if in.internal && r.isControl() {
			if err := t.proc.Control(in.source, r.value); err != nil {
				return did, err
			}
			in.position++
			continue
		}
		again, err := t.step(in, r)
		if err != nil || again {
			return did, err
		}
	}
}

// advance fires what the watermark has completed. It reports false when a commit has to come first.
func (t *task) advance() (bool, error) {
	for t.proc.Moved() {
		before := t.proc.Effects()
		budget := t.c.o.firings
		if budget == 0 {
			budget = 256
		}
		done, err := t.proc.Advance(budget)
		if t.proc.Effects() != before {
			t.dirty = true
		}
		if err != nil {
			return false, err
		}
		if !done && t.c.o.firings > 0 {
			t.dirty, t.inst.full = true, true
			return false, nil
		}
	}
	return true, nil
}

// step processes one record. It reports true when the instance has gone back to its last commit.
func (t *task) step(in *input, r *record) (bool, error) {
	at := place{in.source, in.position}
	if err := t.poison[at]; err != nil {
		return false, t.refuse(in, r, err)
	}
	rec := processor.Record{
		Topic: in.topic, Partition: t.id.Partition, Offset: in.position, Time: r.time, Key: r.key, Value: r.value,
		Headers: slices.Clone(r.headers),
	}
	before := t.proc.Effects()
	err := t.proc.Process(in.source, &rec)
	if err == nil {
		in.position++
		t.dirty = true
		return false, nil
	}
	err = &RecordError{Topic: in.topic, Partition: int(t.id.Partition), Offset: in.position, Err: err}
	var fault *processor.Error
	switch {
	case !errors.As(err, &fault) || !t.c.o.DeadLetter:
		return false, err
	case t.proc.Effects() == before:
		return false, t.refuse(in, r, err)
	}
	if t.poison == nil {
		t.poison = map[place]error{}
	}
	t.poison[at] = err
	t.inst.txn = transaction{}
	for _, o := range t.inst.tasks {
		if err := o.abort(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// refuse sends a record to the dead letters.
func (t *task) refuse(in *input, r *record, err error) error {
	t.inst.txn.dead = append(t.inst.txn.dead, DeadLetter{
		Topic: in.topic, Partition: int(t.id.Partition), Offset: in.position, Key: r.key, Value: r.value, Err: err,
	})
	in.position++
	t.dirty = true
	return nil
}

// Send implements processor.Output.
func (t *task) Send(sink int, by []byte, time int64, key, value []byte, headers []processor.Header) error {
	to := t.sub.sinks[sink]
	n := int32(len(to.parts))
	p := t.id.Partition % n
	if by != nil {
		p = processor.PartitionOf(by, n)
	}
	t.inst.txn.sends = append(t.inst.txn.sends, send{to, p, record{time, key, value, slices.Clone(headers)}})
	return nil
}

// Late implements processor.Output.
func (t *task) Late(l *processor.Late) error {
	t.inst.txn.late = append(t.inst.txn.late, lateOf(l))
	return nil
}

// RecordError is a record that could not be processed.
type RecordError struct {
	Topic     string
	Partition int
	Offset    int64
	Err       error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("tidemarktest: %s/%d offset %d: %v", e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

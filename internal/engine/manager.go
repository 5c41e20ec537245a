package engine

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/rebalance"
)

// manager turns assignments into tasks. Its callbacks run on the group client's goroutine; each task opens on
// a goroutine of its own, so that neither a restore nor a slow database ever delays the group.
type manager struct {
	e *Engine

	mu      sync.Mutex
	ctx     context.Context // of the openers
	end     context.CancelFunc
	tasks   map[processor.TaskID]*task
	owned   map[topicPartition]bool
	closing map[processor.TaskID]chan struct{} // databases not yet released
	load    []map[string]int                   // tasks per worker and sub-topology
	stopped bool
	heard   *rebalance.Assignment // the last one
	before  *rebalance.Assignment // the one before
	dead    []string              // transactional ids still to be fenced
	known   map[string]rebalance.Host
	fence   chan struct{} // holds one token while an opener fences: they take turns

	wg   sync.WaitGroup
	gate chan struct{} // bounds how many tasks restore at a time
}

// maxOpening is the number of tasks that open at a time: enough to keep the broker busy, few enough that their
// restore buffers stay within the memory set aside for them.
const maxOpening = 4

func newManager(e *Engine) *manager {
	m := &manager{
		e:       e,
		tasks:   make(map[processor.TaskID]*task),
		owned:   make(map[topicPartition]bool),
		closing: make(map[processor.TaskID]chan struct{}),
		known:   make(map[string]rebalance.Host),
		gate:    make(chan struct{}, maxOpening),
		fence:   make(chan struct{}, 1),
	}
	for range e.cfg.Workers {
		m.load = append(m.load, make(map[string]int))
	}
	return m
}

func (m *manager) start(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx, m.end = context.WithCancel(ctx)
}

// stop ends the openers and takes no further assignment.
func (m *manager) stop() {
	m.mu.Lock()
	m.stopped = true
	for _, t := range m.tasks {
		if TaskState(t.phase.Load()) == Opening {
			t.cancel()
		}
	}
	m.end()
	m.mu.Unlock()
}

// wait returns when every database is released.
func (m *manager) wait() { m.wg.Wait() }

// onAssignment keeps the leader's word: the host map tells who is in the group and, by comparison with the one
// before, who has gone. It runs before onAssigned.
func (m *manager) onAssignment(a rebalance.Assignment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.heard = m.heard, &a
	present := make(map[string]bool, len(a.Hosts))
	for _, h := range a.Hosts {
		present[h.Instance] = true
	}
	for id, h := range m.known {
		if !present[id] && id != m.e.instance {
			// Dead or gone: its open transactions would hold up everybody for the transaction time-out. One that is
			// listed is never fenced.
			for n := range h.Workers {
				m.dead = append(m.dead, m.e.names.TransactionalID(id, n))
			}
			delete(m.known, id)
		}
	}
	for _, h := range a.Hosts {
		m.known[h.Instance] = h
	}
	m.e.announce(a)
}

// onAssigned is called with partitions that are ours from now on, before the client fetches them.
func (m *manager) onAssigned(_ context.Context, cl *kgo.Client, added map[string][]int32) {
	cl.PauseFetchPartitions(added)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	member, _ := cl.GroupMetadata() // this may run before the client is anywhere else to be had from
	var fresh []*task
	for topic, parts := range added {
		s := m.e.byTopic[topic]
		for _, p := range parts {
			m.owned[topicPartition{topic, p}] = true
			if s == nil {
				continue
			}
			id := processor.TaskID{Sub: s.id, Partition: p}
			if m.tasks[id] == nil && m.complete(s, p) {
				t := m.newTask(s, id, member)
				m.tasks[id] = t
				fresh = append(fresh, t)
			}
		}
	}
	fresh = append(fresh, m.replaceForeign(cl, member)...)
	for _, t := range fresh {
		m.e.source.add(cl, t.inputs)
		m.open(t)
	}
	if len(m.tasks) == 0 && m.heard != nil && len(m.heard.Waiting) == 0 {
		m.e.becameReady()
	}
}

// replaceForeign gives up the tasks that an earlier member of this instance was given, and returns new ones in their place:
// the assignment is of a new member. The manager's lock is held.
func (m *manager) replaceForeign(cl *kgo.Client, member string) (fresh []*task) {
	for id, t := range m.tasks {
		if t.lease.member == member {
			continue
		}
		m.e.log.Info("task is opened anew: the group had dropped this instance", zap.Stringer("task", id))
		t.lease.giveUp()
		if TaskState(t.phase.Load()) == Opening {
			t.cancel()
		}
		m.e.source.remove(cl, t.inputs)
		t.worker.signal()
		u := m.newTask(t.sub, id, member)
		m.tasks[id] = u
		m.closing[id] = t.closed
		fresh = append(fresh, u)
	}
	return fresh
}

// complete says whether all partitions of a task are ours.
func (m *manager) complete(s *sub, p int32) bool {
	for i, topic := range s.sources {
		if p < s.partitions[i] && !m.owned[topicPartition{topic, p}] {
			return false
		}
	}
	return true
}

// newTask makes a task that a member was given, and hands it to the worker with the fewest tasks of its sub-topology.
func (m *manager) newTask(s *sub, id processor.TaskID, member string) *task {
	best := 0
	total := func(w int) (n int) {
		for _, k := range m.load[w] {
			n += k
		}
		return n
	}
	for w := range m.load {
		a, b := m.load[w][s.id], m.load[best][s.id]
		if a < b || a == b && total(w) < total(best) {
			best = w
		}
	}
	m.load[best][s.id]++
	if len(s.Stores) > 0 {
		m.e.stateful.Add(1)
	}
	t := &task{id: id, sub: s, worker: m.e.workers[best], closed: make(chan struct{})}
	t.lease.member = member
	t.out.task = t
	for i, topic := range s.sources {
		if id.Partition >= s.partitions[i] {
			continue // a shorter input of a sub-topology without state
		}
		t.inputs = append(t.inputs, &input{topic: topic, partition: id.Partition, source: i, task: t, internal: s.Sources[i].Repartition != ""})
	}
	return t
}

// open starts the opener of a task. The manager's lock is held.
func (m *manager) open(t *task) {
	ctx, cancel := context.WithCancel(m.ctx)
	t.cancel = cancel
	t.phase.Store(int32(Opening))
	before := m.closing[t.id]
	m.wg.Go(func() {
		defer cancel()
		if before != nil {
			<-before // the former life of this task still holds the database
		}
		select {
		case m.gate <- struct{}{}:
		case <-ctx.Done():
			m.release(t)
			return
		}
		err := m.e.openTask(ctx, t)
		<-m.gate
		switch {
		case t.lease.lost() || ctx.Err() != nil:
			m.release(t)
		case err != nil:
			m.release(t)
			m.e.fail(err)
		default:
			t.worker.post(func() { t.worker.adopt(t) })
		}
	})
}

// recheck repeats the look for open transactions for a producer that has replaced the one the opener knew.
func (m *manager) recheck(t *task, p *producer) {
	m.mu.Lock()
	ctx := m.ctx
	m.mu.Unlock()
	m.wg.Go(func() {
		if err := m.e.awaitNoOpen(ctx, p, t.writes()); err != nil {
			m.release(t)
			return
		}
		t.checkedBy = p
		t.worker.post(func() { t.worker.adopt(t) })
	})
}

// later runs f after a pause, unless the instance ends before.
func (m *manager) later(pause time.Duration, f func()) {
	m.mu.Lock()
	ctx := m.ctx
	m.mu.Unlock()
	m.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.e.cfg.Clock.After(pause):
			f()
		}
	})
}

// running notes that a task has begun to run.
func (m *manager) running(t *task) {
	m.e.log.Info("task running", zap.Stringer("task", t.id), zap.Uint64("seq", t.seq), zap.Int("worker", t.worker.n))
	m.e.taskEvent(t, Running)
	m.mu.Lock()
	all := true
	var settle []func()
	for _, u := range m.tasks {
		all = all && TaskState(u.phase.Load()) == Running
		if f := u.kept.settle.Load(); f != nil {
			settle = append(settle, *f)
		}
	}
	m.mu.Unlock()
	if !all {
		return
	}
	for _, f := range settle {
		f()
	}
	m.e.becameReady()
}

// onRevoked gives partitions up: the workers commit or abort the tasks, the leases end, and only then does the
// client go on to the next generation.
func (m *manager) onRevoked(_ context.Context, cl *kgo.Client, lost map[string][]int32) {
	tasks := m.take(lost)
	if len(tasks) == 0 {
		return
	}
	m.e.cfg.CrashPoint(K17)
	perWorker := make(map[*worker][]*task)
	for _, t := range tasks {
		if TaskState(t.phase.Load()) == Opening {
			t.lease.giveUp()
			t.cancel()
			continue
		}
		perWorker[t.worker] = append(perWorker[t.worker], t)
	}
	budget := m.e.cfg.Clock.NewTimer(m.e.cfg.RevokeBudget)
	defer budget.Stop()
	var acks []chan struct{}
	for w, ts := range perWorker {
		r := &revocation{tasks: ts, ack: make(chan struct{})}
		acks = append(acks, r.ack)
		w.post(func() { w.revoke(r) })
	}
wait:
	for _, ack := range acks {
		select {
		case <-ack:
		case <-budget.C():
			m.e.log.Warn("revoked tasks did not finish in time, their transaction is aborted", zap.Duration("budget", m.e.cfg.RevokeBudget))
			break wait
		}
	}
	m.e.cfg.CrashPoint(K17b)
	m.drop(cl, tasks)
}

// onLost is called when the instance is out of the group already. The leases end before the client joins
// again.
func (m *manager) onLost(_ context.Context, cl *kgo.Client, lost map[string][]int32) {
	m.e.cfg.CrashPoint(K17c)
	tasks := m.take(lost)
	for _, t := range tasks {
		t.lease.giveUp()
		if t.cancel != nil && TaskState(t.phase.Load()) == Opening {
			t.cancel()
		}
	}
	m.drop(cl, tasks)
}

// take removes the tasks of lost partitions from the assignment.
func (m *manager) take(lost map[string][]int32) []*task {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*task
	for topic, parts := range lost {
		s := m.e.byTopic[topic]
		for _, p := range parts {
			delete(m.owned, topicPartition{topic, p})
			if s == nil {
				continue
			}
			id := processor.TaskID{Sub: s.id, Partition: p}
			if t := m.tasks[id]; t != nil {
				delete(m.tasks, id)
				m.closing[id] = t.closed
				out = append(out, t)
			}
		}
	}
	return out
}

// drop ends the leases and forgets the inputs.
func (m *manager) drop(cl *kgo.Client, tasks []*task) {
	for _, t := range tasks {
		t.lease.giveUp()
		m.e.source.remove(cl, t.inputs)
		m.e.log.Info("task lost", zap.Stringer("task", t.id))
		t.worker.signal()
	}
}

// release closes a task's database and forgets the task.
func (m *manager) release(t *task) {
	m.wg.Go(func() {
		m.e.closeTask(t)
		m.mu.Lock()
		if m.tasks[t.id] == t {
			delete(m.tasks, t.id)
		}
		if m.closing[t.id] == t.closed {
			delete(m.closing, t.id)
		}
		if len(t.sub.Stores) > 0 {
			m.e.stateful.Add(-1)
		}
		if n := m.load[t.worker.n]; n[t.sub.id] > 1 {
			n[t.sub.id]--
		} else {
			delete(n, t.sub.id)
		}
		m.mu.Unlock()
		t.phase.Store(int32(Closed))
		m.e.taskEvent(t, Closed)
		close(t.closed)
	})
}

// reopen opens a task anew under a new lease of the same assignment: its last commit has no verdict, so its
// state must be read back. The worker has forgotten it.
func (m *manager) reopen(t *task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks[t.id] != t || t.lease.lost() || m.stopped {
		m.release(t)
		return
	}
	u := m.newTask(t.sub, t.id, t.lease.member)
	m.tasks[t.id] = u
	m.closing[t.id] = t.closed
	t.lease.giveUp()
	m.release(t)
	m.e.source.add(m.e.source.client, u.inputs)
	m.open(u)
}

// takeDead returns the transactional ids of instances that have left since the last call.
func (m *manager) takeDead() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.dead
	m.dead = nil
	return ids
}

// listed says whether an instance was in the group when the leader last spoke.
func (m *manager) listed(instance string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard == nil {
		return false
	}
	for _, h := range m.heard.Hosts {
		if h.Instance == instance {
			return true
		}
	}
	return false
}

// alone says whether there is no other instance with tasks.
func (m *manager) alone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard == nil || len(m.heard.Hosts) < 2
}

// snapshot returns the present tasks.
func (m *manager) snapshot() []*task {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*task, 0, len(m.tasks))
	for _, t := range m.tasks {
		out = append(out, t)
	}
	return out
}

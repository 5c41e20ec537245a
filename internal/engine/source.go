package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// source is the group client and its poll loop. The loop never waits for processing: it hands batches to
// queues, carries out seeks and pauses, and lets rebalances happen after every poll.
type source struct {
	e      *Engine
	client *kgo.Client

	mu     sync.Mutex
	inputs map[topicPartition]*input // owned partitions, changed by the group callbacks
	gen    uint64                    // counts changes of inputs
	seeks  []seek
	cancel context.CancelFunc // wakes a poll that waits

	wake chan struct{} // room in the queues, or a command, while the loop waits for room

	// The loop's own copy of inputs.
	seen    uint64
	local   map[topicPartition]*input
	waiting atomic.Bool
	resume  atomic.Bool // some paused partition has room again
	tight   atomic.Bool // the queues are full of records that wait for others, see room.go
}

type topicPartition struct {
	topic     string
	partition int32
}

// seek asks the loop to fetch an input from offset on.
type seek struct {
	in     *input
	offset int64
	round  uint64
}

// pauseBytes is the queue size of one partition above which it is paused; below half of it, it is resumed. Pausing
// throws away what the client has fetched, so the loop prefers to wait while the queues together are full, and
// pauses only a partition that alone fills half of that.
func (s *source) pauseBytes() int64 { return s.e.cfg.QueueBytes / 2 }

func newSource(e *Engine) *source {
	return &source{e: e, inputs: make(map[topicPartition]*input), wake: make(chan struct{}, 1)}
}

// start joins the group.
func (s *source) start(topics []string, balancer kgo.GroupBalancer) error {
	c := &s.e.cfg
	opts := append([]kgo.Opt{}, c.Client...)
	opts = append(opts, c.GroupOpts...)
	reset := kgo.NewOffset().AtStart()
	if c.StartAt == Latest {
		reset = kgo.NewOffset().AtEnd()
	}
	opts = append(opts,
		kgo.ConsumerGroup(c.App),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancer),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // a position behind a transaction marker is a position too
		kgo.ConsumeStartOffset(reset),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.FetchMaxPartitionBytes(2<<20),
		kgo.FetchMaxBytes(16<<20),
		kgo.SessionTimeout(c.SessionTimeout),
		kgo.HeartbeatInterval(c.Heartbeat),
		kgo.RebalanceTimeout(c.RevokeBudget+10*time.Second),
		kgo.OnPartitionsAssigned(s.e.mgr.onAssigned),
		kgo.OnPartitionsRevoked(s.e.mgr.onRevoked),
		kgo.OnPartitionsLost(s.e.mgr.onLost),
	)
	if c.Static != "" {
		opts = append(opts, kgo.InstanceID(c.Static))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("tidemark: group client: %w", err)
	}
	s.client = cl
	return nil
}

// metadata returns the member id and generation, or false while the instance is not in the group: an empty
// member or a negative generation must never be sent, the broker would not check it.
func (s *source) metadata() (member string, generation int32, ok bool) {
	member, generation = s.client.GroupMetadata()
	return member, generation, member != "" && generation >= 0
}

// add makes partitions known to the loop, paused until a seek makes them live.
func (s *source) add(cl *kgo.Client, ins []*input) {
	s.mu.Lock()
	pause := make(map[string][]int32)
	for _, in := range ins {
		s.inputs[topicPartition{in.topic, in.partition}] = in
		pause[in.topic] = append(pause[in.topic], in.partition)
	}
	s.gen++
	s.mu.Unlock()
	cl.PauseFetchPartitions(pause)
}

// remove forgets partitions and what is queued of them.
func (s *source) remove(cl *kgo.Client, ins []*input) {
	s.mu.Lock()
	resume := make(map[string][]int32)
	for _, in := range ins {
		tp := topicPartition{in.topic, in.partition}
		if s.inputs[tp] == in {
			delete(s.inputs, tp)
			// A pause outlives the ownership: without this the partition would stay paused when it comes back.
			resume[in.topic] = append(resume[in.topic], in.partition)
		}
		s.e.queued.Add(-in.q.clear())
	}
	s.gen++
	s.mu.Unlock()
	if len(resume) > 0 {
		cl.ResumeFetchPartitions(resume)
	}
}

// seek makes the loop fetch an input from its position on; stale chunks are told apart by the round.
func (s *source) seek(in *input, offset int64, round uint64) {
	s.mu.Lock()
	s.seeks = append(s.seeks, seek{in, offset, round})
	s.mu.Unlock()
	s.interrupt()
	s.signal()
}

// interrupt ends the poll that is going on.
func (s *source) interrupt() {
	s.mu.Lock()
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
}

func (s *source) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drained is called by a worker after it has finished a chunk.
func (s *source) drained(in *input) {
	if in.paused.Load() && in.q.bytes.Load() < s.pauseBytes()/2 && !s.resume.Swap(true) {
		s.interrupt() // with all its partitions paused, a poll would wait for ever
	}
	if s.waiting.Load() && (s.e.queued.Load() < s.e.cfg.QueueBytes/2 || s.resume.Load() || s.tight.Load() && in.q.bytes.Load() == 0) {
		s.signal()
	}
}

// loop polls until ctx ends or the client reports something only a person can mend.
func (s *source) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		s.commands()
		if s.e.queued.Load() >= s.e.cfg.QueueBytes {
			if !s.waitForRoom(ctx) {
				continue
			}
			s.makeWay()
		} else {
			s.tight.Store(false)
		}
		pctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		if len(s.seeks) > 0 || s.resume.Load() {
			cancel()
		}
		s.cancel = cancel
		s.mu.Unlock()
		fetches := s.client.PollRecords(pctx, 20_000)
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		cancel()
		err := s.dispatch(fetches)
		s.client.AllowRebalance()
		if err != nil {
			return err
		}
		if fetches.IsClientClosed() {
			return nil
		}
	}
	return nil
}

// commands refreshes the loop's view of the assignment and carries out seeks and resumes.
func (s *source) commands() {
	s.mu.Lock()
	if s.seen != s.gen {
		s.local = make(map[topicPartition]*input, len(s.inputs))
		for tp, in := range s.inputs {
			s.local[tp] = in
		}
		s.seen = s.gen
	}
	seeks := s.seeks
	s.seeks = nil
	s.mu.Unlock()

	if len(seeks) > 0 {
		offsets := make(map[string]map[int32]kgo.EpochOffset)
		resume := make(map[string][]int32)
		for _, k := range seeks {
			in := k.in
			if s.local[topicPartition{in.topic, in.partition}] != in || k.round != in.round.Load() {
				continue
			}
			if offsets[in.topic] == nil {
				offsets[in.topic] = make(map[int32]kgo.EpochOffset)
			}
			offsets[in.topic][in.partition] = kgo.EpochOffset{Epoch: -1, Offset: k.offset}
			resume[in.topic] = append(resume[in.topic], in.partition)
			in.fetched, in.fround, in.live, in.verify = k.offset, k.round, true, true
			in.paused.Store(false)
		}
		if len(offsets) > 0 {
			s.client.SetOffsets(offsets)
			s.client.ResumeFetchPartitions(resume)
		}
	}
	if s.resume.Swap(false) {
		resume := make(map[string][]int32)
		for _, in := range s.local {
			if in.paused.Load() && in.q.bytes.Load() < s.pauseBytes()/2 {
				in.paused.Store(false)
				resume[in.topic] = append(resume[in.topic], in.partition)
			}
		}
		if len(resume) > 0 {
			s.client.ResumeFetchPartitions(resume)
		}
	}
}

// dispatch hands a poll's records to the queues.
func (s *source) dispatch(fetches kgo.Fetches) error {
	var fatal error
	var pause map[string][]int32
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Err != nil {
			if err := s.fetchError(p); err != nil && fatal == nil {
				fatal = err
			}
		}
		in := s.local[topicPartition{p.Topic, p.Partition}]
		if in == nil || !in.live || in.task.lease.lost() || in.fround != in.round.Load() {
			return
		}
		if p.LastStableOffset > in.end.Load() {
			in.end.Store(p.LastStableOffset)
		}
		recs := p.Records
		// What lies below the expected offset was fetched before the last seek.
		for len(recs) > 0 && recs[0].Offset < in.fetched {
			recs = recs[1:]
		}
		if len(recs) == 0 {
			return
		}
		if in.verify && recs[0].Offset > in.fetched {
			// Either the log has a hole here, or the client was still loading the group's offsets when it was told
			// to seek and has not heard. Ask once more.
			in.verify = false
			s.reseek(in)
			return
		}
		in.verify = false
		in.fetched = recs[len(recs)-1].Offset + 1
		var n int64
		for _, r := range recs {
			n += int64(len(r.Key)+len(r.Value)) + 220 // the record struct and the pointer to it
		}
		s.e.queued.Add(n)
		in.arrivals.Add(1) // before the worker can see them
		in.q.put(chunk{round: in.fround, recs: recs, bytes: n})
		in.task.worker.signal()
		if in.q.bytes.Load() > s.pauseBytes() && !in.paused.Load() {
			if pause == nil {
				pause = make(map[string][]int32)
			}
			in.paused.Store(true)
			pause[p.Topic] = append(pause[p.Topic], p.Partition)
			if in.q.bytes.Load() < s.pauseBytes()/2 { // drained before it was marked
				s.resume.Store(true)
			}
		}
	})
	if pause != nil {
		s.client.PauseFetchPartitions(pause)
	}
	return fatal
}

// reseek repeats the last seek of an input.
func (s *source) reseek(in *input) {
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{in.topic: {in.partition: {Epoch: -1, Offset: in.fetched}}})
}

// fetchError tells errors that end the app from those the client retries.
func (s *source) fetchError(p kgo.FetchTopicPartition) error {
	err := p.Err
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		return nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		in := s.local[topicPartition{p.Topic, p.Partition}]
		if in == nil || in.task.lease.lost() {
			return nil
		}
		return s.e.outOfRange(in)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		return s.e.topicGone(p.Topic, err)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return s.e.topicGone(p.Topic, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Errorf("tidemark: read %s: %w: %w; grant READ and DESCRIBE on the topic and on group %s", p.Topic, ErrNotAuthorized, err, s.e.cfg.App)
	}
	var loss *kgo.ErrDataLoss
	if errors.As(err, &loss) {
		return fmt.Errorf("tidemark: %s/%d: %w: consumed to %d, log now ends at %d", loss.Topic, loss.Partition, ErrDataLoss, loss.ConsumedTo, loss.ResetTo)
	}
	s.e.log.Warn("fetch error", zap.String("topic", p.Topic), zap.Int32("partition", p.Partition), zap.Error(err))
	return nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
)

// The monitor's periods.
const (
	coarsePeriod = 20 * time.Millisecond
	lagPeriod    = 5 * time.Second
	topicPeriod  = 30 * time.Second
)

// monitor keeps the coarse clock and looks, now and then, at what no request of the processing path shows:
// lags, partitions that a dead transaction holds up, topics that have grown or were replaced, and a leader
// that has not heard of this member's present data.
func (e *Engine) monitor(ctx context.Context) {
	tick := e.cfg.Clock.NewTicker(coarsePeriod)
	defer tick.Stop()
	now := e.cfg.Clock.Now()
	lagAt, topicsAt := now.Add(lagPeriod), now.Add(topicPeriod)
	held := make(map[topicPartition]standstill)
	warned := make(map[*worker]int64)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		now = e.cfg.Clock.Now()
		e.coarse.Store(now.UnixMilli())
		e.overtime(now, warned)
		if now.After(lagAt) {
			lagAt = now.Add(lagPeriod)
			e.lags(ctx, now, held)
			e.forceIfUnheard()
		}
		if now.After(topicsAt) {
			topicsAt = now.Add(topicPeriod)
			if err := e.topicsChanged(ctx); err != nil {
				e.fail(err)
			}
		}
	}
}

// standstill is a last stable offset that stands below the high watermark.
type standstill struct {
	offset  int64
	since   time.Time
	alarmed bool
}

// lags publishes the lag per input partition and raises the alarm for stuck ones.
func (e *Engine) lags(ctx context.Context, now time.Time, held map[topicPartition]standstill) {
	m := e.cfg.Metrics
	m.lag.Reset() // partitions that have moved must not leave a series behind
	m.tasks.Reset()
	m.queued.Set(float64(e.queued.Load()))
	var parts []changelog.TopicPartition
	committed := make(map[changelog.TopicPartition]int64)
	tasks := e.mgr.snapshot()
	var views, overlay, layer int64
	for _, t := range tasks {
		views += t.memory.views.Load()
		overlay += t.memory.overlay.Load()
		layer += t.memory.layer.Load()
		m.tasks.WithLabelValues(TaskState(t.phase.Load()).String()).Inc()
		for _, in := range t.inputs {
			tp := changelog.TopicPartition{Topic: in.topic, Partition: in.partition}
			parts = append(parts, tp)
			committed[tp] = in.reported.Load()
		}
	}
	m.memory.WithLabelValues("views").Set(float64(views))
	m.memory.WithLabelValues("overlay").Set(float64(overlay))
	m.memory.WithLabelValues("layer").Set(float64(layer))
	e.snapshotLags(now, tasks)
	if len(parts) == 0 {
		return
	}
	bounds, err := changelog.ListBounds(ctx, e.admin, parts)
	if err != nil {
		return
	}
	for _, t := range tasks {
		for _, in := range t.inputs {
			b := bounds[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]
			in.hidden.Store(b.LastStable < b.HighWatermark)
		}
	}
	limit := e.cfg.TransactionTimeout + 20*time.Second
	stuck := 0
	for tp, b := range bounds {
		m.lag.WithLabelValues(tp.Topic, strconv.Itoa(int(tp.Partition))).Set(float64(max(0, b.LastStable-committed[tp])))
		k := topicPartition{tp.Topic, tp.Partition}
		if b.LastStable >= b.HighWatermark {
			delete(held, k)
			continue
		}
		h, ok := held[k]
		if !ok || h.offset != b.LastStable {
			held[k] = standstill{offset: b.LastStable, since: now}
			continue
		}
		if now.Sub(h.since) < limit {
			continue
		}
		stuck++
		if !h.alarmed {
			h.alarmed = true
			held[k] = h
			e.stuckAlarm(ctx, tp, b.LastStable, now.Sub(h.since))
		}
	}
	m.lsoStuck.Set(float64(stuck))
}

// stuckAlarm names the producer that holds a partition up.
func (e *Engine) stuckAlarm(ctx context.Context, tp changelog.TopicPartition, lso int64, since time.Duration) {
	info := StuckInfo{Topic: tp.Topic, Partition: tp.Partition, Offset: lso, Since: since, ProducerID: -1}
	open, err := changelog.OpenTransactions(ctx, e.admin, []changelog.TopicPartition{tp})
	if err == nil {
		for _, o := range open {
			if o.Start == lso || info.ProducerID < 0 {
				info.ProducerID, info.Epoch = o.ProducerID, o.ProducerEpoch
			}
		}
	}
	e.log.Error("last stable offset stands still: a transaction was never ended; find it with kafka-transactions.sh find-hanging and abort it",
		zap.String("topic", tp.Topic), zap.Int32("partition", tp.Partition), zap.Int64("offset", lso), zap.Duration("since", since),
		zap.Int64("producer", info.ProducerID), zap.Int32("epoch", info.Epoch))
	e.stuck(info)
}

// forceIfUnheard makes the leader listen: a static member that comes back with other data is given its old
// assignment without the leader being asked.
func (e *Engine) forceIfUnheard() {
	if e.balancer.Stale() {
		e.log.Info("the leader has not heard of this instance's present data, forcing a rebalance")
		e.source.client.ForceRebalance()
	}
}

// topicsChanged compares the inputs, and what the state is kept in, with what they were at the start.
func (e *Engine) topicsChanged(ctx context.Context) error {
	var names []string
	for t := range e.byTopic {
		names = append(names, t)
	}
	for _, s := range e.subs {
		for _, c := range s.changelogs {
			names = append(names, c.name)
		}
	}
	have, err := changelog.DescribeTopics(ctx, e.admin, names, false)
	if err != nil {
		return nil // the next look will tell
	}
	seen := make(map[string]changelog.Have)
	for _, h := range have {
		seen[h.Topic] = h
	}
	for _, s := range e.subs {
		for i, topic := range s.sources {
			h, ok := seen[topic]
			switch {
			case !ok:
				return fmt.Errorf("tidemark: input %s: %w; it was there at the start", topic, ErrTopicMissing)
			case h.ID != s.topicIDs[topic]:
				return e.recreated(topic, s.topicIDs[topic], h.ID)
			case h.Partitions != s.partitions[i]:
				return fmt.Errorf("tidemark: input %s: %w: it had %d partitions at the start, has %d; keyed state cannot follow: start a new app, or go back by restoring the topic",
					topic, ErrPartitionMismatch, s.partitions[i], h.Partitions)
			}
		}
		for _, c := range s.changelogs {
			if h, ok := seen[c.name]; !ok || h.ID != s.topicIDs[c.name] {
				return fmt.Errorf("tidemark: %s: %w; it was there at the start; to rebuild the state run: tidemark reset --app %s", c.name, ErrChangelogLost, e.cfg.App)
			}
		}
	}
	return nil
}

func (e *Engine) recreated(topic string, was, is [16]byte) error {
	return fmt.Errorf("tidemark: input %s: %w: id was %s, is %s; to process the new topic run: tidemark reset --app %s",
		topic, ErrTopicRecreated, changelog.FormatTopicID(was), changelog.FormatTopicID(is), e.cfg.App)
}

// topicGone looks into a fetch error about a topic's identity. The group client reports it; metadata tells
// whether the topic is gone, new, or only unknown to one broker for a moment.
func (e *Engine) topicGone(topic string, cause error) error {
	ctx, cancel := context.WithTimeout(e.admin.Context(), 5*time.Second)
	defer cancel()
	err := e.topicsChanged(ctx)
	if err == nil && errors.Is(cause, kerr.UnknownTopicOrPartition) {
		e.log.Warn("fetch error", zap.String("topic", topic), zap.Error(cause))
	}
	return err
}

// overtaken says whether the group's offset of a partition is beyond a position of ours: then this instance has lost
// the partition without having heard of it, and what it wants to read may be purged already.
func (e *Engine) overtaken(ctx context.Context, tp changelog.TopicPartition, position int64) (bool, error) {
	o, err := changelog.StableOffsets(ctx, e.admin, e.cfg.Clock, e.cfg.App, []changelog.TopicPartition{tp}, time.Second)
	return err == nil && o[tp].Found && o[tp].Offset > position, err
}

// askAgain has a partition fetched again whose position is outside of its log for a reason that could not be found out: an
// instance that is cut off from the group's coordinator may have lost the partition, and then nothing is wrong.
func (e *Engine) askAgain(in *input, cause error) error {
	e.log.Debug("a position is outside of its log, and why does not show yet", zap.Stringer("task", in.task), zap.Error(cause))
	e.source.client.PauseFetchPartitions(map[string][]int32{in.topic: {in.partition}}) // the client would fetch again at once
	offset, round := in.fetched, in.round.Load()
	e.mgr.later(askAgainAfter, func() { e.source.seek(in, offset, round) })
	return nil
}

// askAgainAfter is the pause before a partition is fetched again that is outside of its log for an unknown reason.
const askAgainAfter = 250 * time.Millisecond

// outOfRange explains a position outside of the log.
func (e *Engine) outOfRange(in *input) error {
	ctx, cancel := context.WithTimeout(e.admin.Context(), 5*time.Second)
	defer cancel()
	tp := changelog.TopicPartition{Topic: in.topic, Partition: in.partition}
	bounds, err := changelog.ListBounds(ctx, e.admin, []changelog.TopicPartition{tp})
	if err != nil {
		return e.askAgain(in, err)
	}
	b := bounds[tp]
	if in.fetched < b.Start {
		overtaken, err := e.overtaken(ctx, tp, in.fetched)
		if err != nil {
			return e.askAgain(in, err)
		}
		if overtaken {
			e.log.Info("another instance has read further, this one has yet to hear of it", zap.Stringer("task", in.task))
			e.source.client.PauseFetchPartitions(map[string][]int32{in.topic: {in.partition}}) // until it is lost
			return nil
		}
		return fmt.Errorf("tidemark: %w: %s/%d is read to %d, its log begins at %d; raise the retention, or run tidemark reset --app %s",
			ErrSourceOffsetLost, in.topic, in.partition, in.fetched, b.Start, e.cfg.App)
	}
	if in.fetched > b.HighWatermark {
		return fmt.Errorf("tidemark: %w: %s/%d is read to %d, its log ends at %d; run tidemark reset --app %s",
			ErrDataLoss, in.topic, in.partition, in.fetched, b.HighWatermark, e.cfg.App)
	}
	e.source.seek(in, in.fetched, in.round.Load())
	return nil
}

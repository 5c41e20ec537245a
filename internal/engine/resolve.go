package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
)

// resolve is step 5: EndTxn was sent and its outcome is not known. Re-initialising makes the broker finish or
// abort the transaction; the stable offsets then say which, by {seq, writer}: seq alone could be that of
// another owner.
func (e *Engine) resolve(ctx context.Context, f *flight, cause error) landing {
	e.log.Info("transaction outcome unknown", zap.Error(cause))
	p, err := e.rebuildProducer(ctx, f.prod)
	if err != nil {
		return landing{outcome: noVerdict, cause: "unknown", err: errors.Join(cause, err)}
	}
	verdict, err := e.verdict(ctx, f)
	if err != nil {
		e.log.Error("transaction outcome stays unknown, its tasks are opened anew", zap.Error(err))
		verdict = noVerdict
	}
	if err := e.awaitNoOpen(ctx, p, f.writes); err != nil {
		return landing{outcome: noVerdict, cause: "unknown", err: err, prod: p}
	}
	return landing{outcome: verdict, cause: "unknown", err: cause, prod: p}
}

// verdict reads the stable offsets of the partitions that are still ours. A task whose lease is gone drops
// its overlay whatever the outcome was, so it has no say. Offsets of an earlier commit do not prove that this one was
// aborted: a coordinator that has just loaded its log may answer with an older state (seen on Kafka 4.4.0 after a kill,
// with every offset of the last minute missing). So the progress records, of the same transaction, must agree.
func (e *Engine) verdict(ctx context.Context, f *flight) (outcome, error) {
	var parts []changelog.TopicPartition
	for _, ft := range f.tasks {
		if ft.task.lease.lost() {
			continue
		}
		for _, in := range ft.task.inputs {
			parts = append(parts, changelog.TopicPartition{Topic: in.topic, Partition: in.partition})
		}
	}
	if len(parts) == 0 {
		return aborted, nil
	}
	bound := e.cfg.TransactionTimeout + 20*time.Second
	offsets, err := changelog.StableOffsets(ctx, e.admin, e.cfg.Clock, e.cfg.App, parts, bound)
	if err != nil {
		return noVerdict, err
	}
	for _, ft := range f.tasks {
		if ft.task.lease.lost() {
			continue
		}
		for _, in := range ft.task.inputs {
			c := offsets[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]
			md, ok, err := changelog.ParseMetadata(c.Metadata)
			if err != nil || !ok || md.Seq != ft.seq || md.Writer != f.prod.writer {
				return e.recorded(ctx, f)
			}
		}
	}
	return committed, nil
}

// recorded reads off the progress topic whether a flight was committed. Its producer has been initialised anew, so the
// broker ends the transaction soon, and the read waits for that.
func (e *Engine) recorded(ctx context.Context, f *flight) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.TransactionTimeout+20*time.Second)
	defer cancel()
	for _, ft := range f.tasks {
		if ft.task.lease.lost() {
			continue
		}
		tp := changelog.TopicPartition{Topic: ft.task.sub.progress, Partition: ft.task.id.Partition}
		bounds, err := changelog.ListBounds(ctx, e.admin, []changelog.TopicPartition{tp})
		if err != nil {
			return noVerdict, err
		}
		tail, err := e.reader.ReadTail(ctx, tp.Topic, tp.Partition, bounds[tp].HighWatermark)
		if err != nil {
			return noVerdict, err
		}
		if !tail.Found || tail.Record.Seq != ft.seq || tail.Record.Writer != f.prod.writer {
			return aborted, nil
		}
	}
	e.log.Warn("the group's coordinator does not show a commit that was made: restart its broker if that lasts", zap.String("group", e.cfg.App))
	return committed, nil
}

// awaitNoOpen returns when none of the partitions shows an open transaction of the producer's id. A broker
// defect can leave one without its marker; the next commit of the same id would publish its records, and
// only an operator can write the marker. So the wait has no bound but ctx, and is an alarm.
func (e *Engine) awaitNoOpen(ctx context.Context, p *producer, writes []topicPartition) error {
	if p.txnID == "" {
		return nil
	}
	backoff := 5 * time.Millisecond
	alarmed := false
	start := e.cfg.Clock.Now()
	for {
		todo := p.unchecked(writes)
		if len(todo) == 0 {
			return nil
		}
		parts := make([]changelog.TopicPartition, len(todo))
		for i, tp := range todo {
			parts[i] = changelog.TopicPartition{Topic: tp.topic, Partition: tp.partition}
		}
		open, err := changelog.OpenTransactions(ctx, e.admin, parts)
		if err == nil {
			stuck := 0
			for _, o := range open {
				if o.ProducerID != p.id {
					continue
				}
				stuck++
				if !alarmed && e.cfg.Clock.Now().Sub(start) > time.Second {
					e.log.Error("open transaction of this producer without its end: the partition stays blocked until the marker is written",
						zap.String("topic", o.Topic), zap.Int32("partition", o.Partition), zap.Int64("producer", o.ProducerID),
						zap.Int32("epoch", o.ProducerEpoch), zap.Int64("start", o.Start))
					e.stuck(StuckInfo{Topic: o.Topic, Partition: o.Partition, ProducerID: o.ProducerID, Epoch: o.ProducerEpoch, Offset: o.Start})
				}
			}
			if stuck == 0 {
				p.markClean(todo)
				return nil
			}
			alarmed = alarmed || e.cfg.Clock.Now().Sub(start) > time.Second
		} else if notAuthorized(err) {
			// It takes READ on everything that is written.
			e.fail(fmt.Errorf("tidemark: look for open transactions: %w", err))
			return err
		} else if ctx.Err() == nil {
			e.log.Warn("look for open transactions", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.cfg.Clock.After(backoff):
			backoff = min(2*backoff, time.Second)
		}
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark/tidemark/changelog"
)

// commitOffsets is the commit of the at-least-once guarantee: flush, then the offsets through the group.
// Progress may be ahead of the offsets after a crash: nothing ties the progress record to the output beside it.
// A task goes on from the offsets then (sentTo), and counts twice what the progress already covers.
func (e *Engine) commitOffsets(ctx context.Context, f *flight) landing {
	if err := f.prod.client.Flush(ctx); err != nil {
		return landing{outcome: aborted, cause: "flush", err: err, prod: f.prod}
	}
	if r, err := f.prod.produceError(); err != nil {
		if r != nil {
			err = fmt.Errorf("produce to %s/%d: %w", r.Topic, r.Partition, err)
		}
		e.failIfNotAuthorized(err)
		return landing{outcome: aborted, cause: "produce", err: err, refused: refusedContent(err), prod: f.prod}
	}
	e.cfg.CrashPoint(K4)
	f.acknowledged()
	commits, err := f.offsets()
	if err != nil {
		return landing{outcome: aborted, cause: "metadata", err: err, prod: f.prod}
	}
	member, generation, ok := e.source.metadata()
	for second := false; ; second = true {
		if f.lost(member) != nil {
			return landing{outcome: aborted, cause: "lease lost", err: errLeaseLost, prod: f.prod}
		}
		if !ok {
			return landing{outcome: aborted, cause: "not a member", prod: f.prod}
		}
		err := e.groupOffsetCommit(ctx, member, generation, commits)
		if err == nil {
			e.cfg.CrashPoint(K6)
			return landing{outcome: committed, prod: f.prod}
		}
		e.failIfNotAuthorized(err)
		if second || !errors.Is(err, kerr.IllegalGeneration) && !errors.Is(err, kerr.RebalanceInProgress) {
			return landing{outcome: aborted, cause: "offsets", err: err, prod: f.prod}
		}
		member, generation, ok = e.awaitGeneration(ctx, f, generation)
	}
}

// sentTo returns where an input of an at-least-once task goes on: at the committed offset, up to which all
// output is acknowledged, if the progress record is ahead of it. ok is false when nothing was ever committed.
func (s *sight) sentTo(tp changelog.TopicPartition, progress int64) (offset int64, ok bool) {
	c := s.offsets[tp]
	switch {
	case c.Found:
		return min(c.Offset, progress), true
	case s.progress.Seq <= 1:
		return 0, false
	}
	return progress, true // the group has lost its offsets
}

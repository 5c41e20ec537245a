package engine

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// commitOffsets is the commit of the at-least-once guarantee: flush, then the offsets through the group.
// Progress may be ahead of the offsets after a crash; a task goes on from its progress record.
func (e *Engine) commitOffsets(ctx context.Context, f *flight) landing {
	if err := f.prod.client.Flush(ctx); err != nil {
		return landing{outcome: aborted, cause: "flush", err: err, prod: f.prod}
	}
	if err, _ := f.prod.produceError(); err != nil {
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
		if f.lost() != nil {
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

package engine

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
)

// purger deletes consumed repartition records, never beyond the committed offset, and what has expired of trimmed
// changelogs: nothing else protects what an open transaction or another task still needs.
type purger struct {
	e  *Engine
	mu sync.Mutex
	up map[changelog.TopicPartition]int64 // up to where partitions may be purged, and are not yet
}

func newPurger(e *Engine) *purger {
	return &purger{e: e, up: make(map[changelog.TopicPartition]int64)}
}

// committed notes a task's committed offsets on repartition topics, and what is needed of its trimmed changelogs. Called
// by workers after step 6.
func (p *purger) committed(t *task) {
	if t.trimmedTo == nil {
		t.trimmedTo = make([]int64, len(t.sub.changelogs))
	}
	for cl := range t.trims {
		if needed := t.trims[cl].Needed(); needed > t.trimmedTo[cl] {
			t.trimmedTo[cl] = needed
			p.mu.Lock()
			p.up[changelog.TopicPartition{Topic: t.sub.changelogs[cl].name, Partition: t.id.Partition}] = needed
			p.mu.Unlock()
		}
	}
	for _, in := range t.inputs {
		if t.sub.Sources[in.source].Repartition == "" {
			continue
		}
		p.mu.Lock()
		p.up[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}] = in.committed
		p.mu.Unlock()
	}
}

func (p *purger) run(ctx context.Context) {
	tick := p.e.cfg.Clock.NewTicker(p.e.cfg.PurgeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		p.mu.Lock()
		todo := p.up
		p.up = make(map[changelog.TopicPartition]int64)
		p.mu.Unlock()
		if len(todo) == 0 {
			continue
		}
		if _, err := changelog.Purge(ctx, p.e.admin, todo); err != nil && ctx.Err() == nil {
			p.e.log.Warn("purge", zap.Error(err))
		}
	}
}

package engine

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
)

// staleness is how far a task that restores is behind, in records of its changelogs.
type staleness struct{ lag atomic.Int64 }

// showStale lets readers who ask for it see a task that restores on top of a local directory or a snapshot: what that held
// is never missing, only old. A restore from the start of the changelogs shows nothing, since rows that are not there yet
// would look as if there were none. The caller ends it before the database has another user.
func (e *Engine) showStale(t *task, total int64) (*staleness, func()) {
	s := new(staleness)
	s.lag.Store(total)
	blob, err := store.ReadProgress(t.db)
	if err != nil || blob == nil {
		return s, func() {}
	}
	p, err := changelog.DecodeProgress(blob)
	if err != nil || p.Seq == 0 {
		return s, func() {}
	}
	r, end, err := store.OpenReading(t.db, t.sub.Stores, p.Seq)
	if err != nil {
		return s, func() {}
	}
	m := query.Meta{Task: query.Task{Sub: t.sub.id, Partition: t.id.Partition}, Seq: p.Seq, Watermark: query.NoWatermark, Time: p.Time}
	if t.sub.Timed && p.W != changelog.NoWatermark {
		m.Watermark = p.W
	}
	t.public.Store(&exposed{rows: r, meta: m, stale: s})
	t.bell.ring()
	return s, func() {
		t.hide()
		if err := end(); err != nil {
			e.log.Warn("close readers", zap.Stringer("task", t.id), zap.Error(err))
		}
	}
}

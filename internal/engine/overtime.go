package engine

import (
	"time"

	"go.uber.org/zap"
)

// overtime warns once of every transaction that has been open for half of its time-out: at its end the broker aborts
// it and its records are processed again. The monitor calls it, since the worker may be the one that is held up.
func (e *Engine) overtime(now time.Time, warned map[*worker]int64) {
	half := e.cfg.TransactionTimeout / 2
	for _, w := range e.workers {
		p := w.prod.Load()
		if p == nil {
			continue
		}
		opened := p.opened.Load()
		open := now.Sub(time.UnixMilli(opened))
		if opened == 0 || opened == warned[w] || open < half {
			continue
		}
		warned[w] = opened
		fields := []zap.Field{zap.Duration("open", open), zap.Duration("timeout", e.cfg.TransactionTimeout)}
		if t := w.current.Load(); t != nil {
			fields = append(fields, zap.Stringer("task", t.id)) // it is processing a record
		}
		w.log.Warn("transaction is open for half of its time-out", fields...)
	}
}

package engine

import "time"

// nextTick returns the next commit tick after now. Ticks of all workers and instances are aligned to
// multiples of the interval on the wall clock, with a jitter of 5 %: unaligned transactions of several
// producers on one partition hold back each other's visibility.
func (e *Engine) nextTick(now time.Time) time.Time {
	d := e.cfg.CommitInterval
	next := now.Truncate(d).Add(d)
	if j := int64(d / 10); j > 0 {
		next = next.Add(time.Duration(int64(e.random()%uint64(j)) - j/2))
	}
	if !next.After(now) {
		next = next.Add(d)
	}
	return next
}

package pebblestore

import "time"

const (
	// quietRuns is how many runs are loaded before a quiet database compacts unasked.
	quietRuns = 8
	// quietTime is when a quiet database that is incomplete fetches everything unasked.
	quietTime = 10 * time.Second
)

// Settle ends the quiet that Options.Quiet began: the database does in the background what there is to do. It may be called
// by any goroutine, several times and after Close.
func (d *DB) Settle() {
	d.settle.Do(func() { close(d.settled) })
	d.place.l.grant()
}

// held tells whether compactions are put off. Their work is the same later, and what a restore or a read waits for comes
// first. Those of an incomplete database would fetch it in their own order.
func (d *DB) held() bool {
	if !d.o.Quiet || d.loads.Load() >= quietRuns {
		return false
	}
	select {
	case <-d.settled:
		return d.lazy != nil && !d.lazy.complete.Load()
	default:
		return true
	}
}

// loaded counts a run; the last one that is waited for lets compactions begin.
func (d *DB) loaded() {
	if d.o.Quiet && d.loads.Add(1) == quietRuns {
		d.place.l.grant()
	}
}

// await waits for the end of the quiet before everything is fetched.
func (l *lazy) await() {
	if !l.d.o.Quiet {
		return
	}
	timer := l.clock.NewTimer(quietTime)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-l.d.settled:
	case <-l.ctx.Done():
	}
}

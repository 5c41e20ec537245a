package system

import (
	"sync"
	"sync/atomic"
	"time"
)

// pause makes a user's function block once for a while, for whoever calls it meanwhile.
type pause struct {
	at   int64
	last time.Duration

	n     atomic.Int64
	once  sync.Once
	until atomic.Pointer[time.Time]
}

func (p *pause) record() {
	if p.n.Add(1) < p.at {
		return
	}
	p.once.Do(func() {
		end := time.Now().Add(p.last)
		p.until.Store(&end)
	})
	if end := p.until.Load(); end != nil {
		if left := time.Until(*end); left > 0 {
			time.Sleep(left)
			return
		}
	}
}

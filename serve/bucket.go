package serve

import (
	"container/list"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// maxBuckets bounds the memory for principals; the one that has not asked for longest is forgotten first, and then has a
// full bucket again.
const maxBuckets = 4096

// buckets are the token buckets of principals.
type buckets struct {
	rate  Rate
	clock clock.Clock

	mu    sync.Mutex
	order *list.List // of *bucket, the latest first
	by    map[string]*list.Element
}

type bucket struct {
	who    string
	tokens float64
	at     time.Time
}

func newBuckets(r Rate, c clock.Clock) *buckets {
	return &buckets{rate: r, clock: c, order: list.New(), by: map[string]*list.Element{}}
}

// take takes a token of a principal and says whether there was one.
func (b *buckets) take(who string) bool {
	if b.rate.PerSecond <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	e := b.by[who]
	if e == nil {
		if b.order.Len() >= maxBuckets {
			last := b.order.Back()
			delete(b.by, b.order.Remove(last).(*bucket).who)
		}
		e = b.order.PushFront(&bucket{who, float64(b.rate.Burst), now})
		b.by[who] = e
	}
	b.order.MoveToFront(e)
	k := e.Value.(*bucket)
	k.tokens = min(float64(b.rate.Burst), k.tokens+now.Sub(k.at).Seconds()*b.rate.PerSecond)
	k.at = now
	if k.tokens < 1 {
		return false
	}
	k.tokens--
	return true
}

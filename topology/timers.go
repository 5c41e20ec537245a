package topology

import (
	"reflect"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// Timer is a timer that fires: what the OnTimer method of a custom processor gets.
type Timer[K any] = processor.Timer[K]

// Tick is one run of a periodic callback: what the OnTick method of a custom processor gets.
type Tick = processor.Tick

// Domain is a kind of time, of a Timer.
type Domain = processor.Domain

// The kinds of time a timer may have.
const (
	EventTime      = processor.EventTime      // as the watermark tells it
	ProcessingTime = processor.ProcessingTime // as the clock tells it
)

// TimerStore is a handle of the timers of one custom processor.
type TimerStore[K any] struct {
	slot
	id     string
	domain Domain
	owner  *node
}

// Timers declares timers of event time of one custom processor, for keys of the records it gets. They call its method
//
//	OnTimer(out Emitter[K2, V2], t Timer[K]) error
//
// when the watermark has come to their time: in the order of time, encoded key and tag, before anything behind the
// processor sees that watermark, and before any further record. What OnTimer emits has the time of the timer. A timer
// that is set to a time the watermark has passed fires before the next record, one that is set by OnTimer in its place
// among those that are due. Timers are part of the state: each fires exactly once, whatever fails.
func Timers[K any](id string) *TimerStore[K] { return &TimerStore[K]{id: id, domain: EventTime} }

// ProcessingTimers declares timers of processing time of one custom processor. They call its OnTimer method as those of
// event time do, at a commit or between records, never while the watermark moves. Those that came due while the app was
// down fire once it runs again. A result that depends on processing time is not repeatable.
func ProcessingTimers[K any](id string) *TimerStore[K] {
	return &TimerStore[K]{id: id, domain: ProcessingTime}
}

func (h *TimerStore[K]) attach(n *node) {
	if h.owner != nil {
		n.t.problems.node(n, "timers %s already are those of %s", h.id, h.owner.name())
		return
	}
	if !h.bind(n, "timers "+h.id) {
		return
	}
	h.owner = n
	n.t.claimID(n, h.id, "store")
	k, ok := n.custom.key.(*encoding[K])
	if !ok {
		n.t.problems.node(n, "timers %s are for keys of type %v, which the processor does not get", h.id, reflect.TypeFor[K]())
		return
	}
	if n.custom.timers[h.domain] {
		n.t.problems.node(n, "timers of %v are listed twice: tags tell timers of one key apart", h.domain)
	}
	n.custom.timers[h.domain], n.custom.methods = true, "timers"
	n.stateful, n.custom.keyed = true, true
	if h.domain == EventTime {
		n.timed = true
	} else {
		n.ticks = true
	}
	needsKey(n, k)
	declareStore[K, int64](n, h.id, idStore{}, func() store.Spec {
		return store.Spec{ID: h.id, Kind: store.Timers, KeySchema: k.schema(), ValueSchema: h.domain.String(), Changelog: true}
	})
	n.custom.slots = append(n.custom.slots, func(b *compiler, s *processor.Scope) {
		t, err := processor.NewTimers(b.b, s, h.id, h.domain)
		if err != nil {
			b.fail(n.name(), err)
		}
		s.Put(h.index, t)
	})
}

func (h *TimerStore[K]) of(s processor.Scoped) *processor.Timers {
	return in[*processor.Timers](&h.slot, s, "timers", h.id)
}

// Set sets the timer with a tag, of the key in hand, to a time in ms. If it is set already it is moved.
func (h *TimerStore[K]) Set(s processor.Scoped, tag string, at int64) error {
	return h.of(s).Set(tag, at)
}

// Delete removes the timer with a tag, of the key in hand. It is no error if it is not set.
func (h *TimerStore[K]) Delete(s processor.Scoped, tag string) error { return h.of(s).Delete(tag) }

// Get returns the time the timer with a tag, of the key in hand, is set to, in ms, and whether it is set. While it fires
// it is not.
func (h *TimerStore[K]) Get(s processor.Scoped, tag string) (at int64, ok bool, err error) {
	return h.of(s).Get(tag)
}

// Every makes the method
//
//	OnTick(out Emitter[K2, V2], t Tick) error
//
// of a custom processor be called every d of processing time: at the multiples of d since 1970, or as soon after as a
// commit or the time between two records allows. A run that comes late is for all points it has missed, which Tick
// counts, and does not move the following ones. There is no run at the start. It has no key, so it may use neither timers
// nor stores by the key in hand; it may scan stores.
func Every(d time.Duration) Handle { return every{d} }

type every struct{ d time.Duration }

func (h every) attach(n *node) {
	switch {
	case h.d <= 0 || h.d%time.Millisecond != 0:
		n.t.problems.node(n, "Every(%v): a period is one of whole milliseconds", h.d)
		return
	case n.custom.every:
		n.t.problems.node(n, "two periods are listed")
		return
	}
	n.custom.every, n.custom.methods, n.ticks = true, "periods", true
	n.detail = append(n.detail, "every "+h.d.String())
	n.custom.slots = append(n.custom.slots, func(_ *compiler, s *processor.Scope) {
		processor.NewPeriod(s, h.d.Milliseconds())
	})
}

package topology

import "github.com/tidemark/tidemark/processor"

// WatermarkHold is a handle by which a custom processor holds back the watermark of what is behind it.
type WatermarkHold struct{ slot }

// HoldWatermark declares that a custom processor may hold its watermark back: because it keeps records that it will emit
// later with their own times, which must not be late then. Every processor that lists it, and each of its tasks, has one
// hold of its own. It is part of what a commit keeps.
func HoldWatermark() *WatermarkHold { return new(WatermarkHold) }

func (h *WatermarkHold) attach(n *node) {
	if !h.bind(n, "the hold of the watermark") {
		return
	}
	n.timed, n.holds = true, true
	n.detail = append(n.detail, "may hold its watermark")
	n.custom.slots = append(n.custom.slots, func(_ *compiler, s *processor.Scope) {
		s.Put(h.index, processor.NewHold(s))
	})
}

func (h *WatermarkHold) of(s processor.Scoped) processor.Hold {
	return in[processor.Hold](&h.slot, s, "hold", "of the watermark")
}

// Set keeps the watermark of what is behind the processor below at, in ms, from now on: records with that time and later
// are not late there. What the watermark has passed already it does not take back. A further Set replaces the hold.
func (h *WatermarkHold) Set(s processor.Scoped, at int64) { h.of(s).Set(at) }

// Release ends the hold.
func (h *WatermarkHold) Release(s processor.Scoped) { h.of(s).Release() }

// Get returns the time that is held, in ms, and whether one is.
func (h *WatermarkHold) Get(s processor.Scoped) (at int64, ok bool) { return h.of(s).Get() }

// Watermark returns the watermark the processor's own records are judged by, in ms; watermark.Unknown before there is
// one.
func (h *WatermarkHold) Watermark(s processor.Scoped) int64 {
	h.of(s)
	return s.Scope().Watermark()
}

// Watermark returns the watermark of the processor in ms, for timers of event time; watermark.Unknown before there is one.
func (h *TimerStore[K]) Watermark(s processor.Scoped) int64 {
	h.of(s)
	return s.Scope().Watermark()
}

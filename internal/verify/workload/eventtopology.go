package workload

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// addEvents adds the workload events: by user, each id once, into all windows. All panes go to one topic.
func addEvents(top *topology.Topology, t Topics) {
	once := top.Stream[string, Event](t.EventsIn).
		// A partition that is silent holds everything up: with an exclusion, which records are late would depend on how long
		// an instance stood still.
		Timestamps(Event.At, watermark.OutOfOrderness(EventDelay), watermark.IdleAfter(watermark.Never), watermark.Align(12*time.Hour)).
		Filter(func(e Event) bool { return !e.End }).
		KeyBy("users", func(e Event) string { return e.User }).
		Dedup(DedupStore, func(e Event) int64 { return e.ID }, EventHorizon)
	once.To(t.OnceOut)
	for _, op := range EventOps() {
		once.Window(op.window(), op.options()...).
			Aggregate(op.Name, topology.Fold(Bag.Add).Merge(Bag.Merge)).
			To(t.PanesOut, topology.PlainValue(), topology.PaneKey(op.paneKey))
	}
}

func (o EventOp) window() window.Window {
	switch o.Kind {
	case Tumbling:
		return window.Tumbling(TumblingSize)
	case Hopping, Sliced:
		return window.Hopping(HoppingSize, HoppingHop)
	case Session:
		return window.Session(SessionGap)
	}
	zone, err := time.LoadLocation(DayZone)
	if err != nil {
		panic(fmt.Sprintf("workload: %v", err)) // package window brings the zones along
	}
	return window.Day(zone)
}

// options gives every mode triggers of another kind. Every window says when it is closed.
func (o EventOp) options() []window.Option {
	opts := []window.Option{window.AllowedLateness(o.Lateness()), window.OnClose(window.Always)}
	if o.Kind == Sliced {
		return opts
	}
	switch o.Mode {
	case Accumulating:
		return append(opts, window.Accumulating(), window.Early(window.AnyOf(window.AfterCount(4), window.Every(time.Second))))
	case Discarding:
		return append(opts, window.Discarding(), window.Early(window.AfterCount(3)), window.Late(window.Every(500*time.Millisecond)))
	}
	return append(opts, window.Retracting(), window.Early(window.Every(700*time.Millisecond)), window.Late(window.AfterCount(2)))
}

// paneKey is the key of a pane: operator, slash, user, and the last moment and the start of the window, 8 bytes each.
func (o EventOp) paneKey(dst, user []byte, b window.Bounds) []byte {
	dst = append(append(append(dst, o.Name...), '/'), user...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.End-1))
	return binary.BigEndian.AppendUint64(dst, uint64(b.Start))
}

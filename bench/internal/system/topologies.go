package system

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// build returns the topology of a workload. count, unless nil, is called with every record of the input topic.
func build(app string, s workload.Spec, p *pause) (t *topology.Topology, count *atomic.Int64) {
	t = topology.New(app)
	in := t.Stream[[]byte, []byte](s.Input())
	if p != nil {
		in = in.Peek(func([]byte) { p.record() })
	}
	switch s.Name {
	case "W1", "W10":
		in.Filter(even).Map(addOne).To(s.Output())
	case "W2", "W2Z":
		in.Count("counts").To(s.Output())
	case "W3":
		in.Timestamps(nil, watermark.OutOfOrderness(time.Minute)).
			Window(window.Tumbling(time.Minute)).
			Aggregate("stats", topology.Fold(stats.add).Merge(stats.merge), topology.ValueCodec[stats](statsCodec{})).
			To(s.Output())
	case "W5":
		// As Kafka Streams does it: a result for every record and no more, and a null for a session that became part of
		// another.
		in.Timestamps(nil, watermark.StreamTime()).
			Window(window.Session(sessionGap), window.AllowedLateness(2*time.Minute), window.Early(window.EachElement()), window.OnTime(window.IfNew)).
			Aggregate("sessions", topology.Fold(pair.add).Merge(pair.merge), topology.ValueCodec[pair](pairCodec{})).
			To(s.Output(), topology.PaneKey(sessionKey))
	case "H10", "H600":
		const hop = workload.Hop * time.Millisecond
		in.Timestamps(nil, watermark.Ascending()).
			Window(window.Hopping(time.Duration(s.Windows())*hop, hop)).
			Count("hops").
			To(s.Output(), topology.PaneKey(hoppingKey))
	case "WINDOWS":
		in.Timestamps(nil, watermark.Ascending()).
			Window(window.Tumbling(time.Minute), window.AllowedLateness(workload.Kept*time.Minute), window.Early(window.EachElement()), window.OnTime(window.IfNew)).
			Aggregate("rows", topology.Fold(func(_, v []byte) []byte { return v })).
			To(s.Output(), topology.PaneKey(hoppingKey))
	case "STATE":
		in.Reduce("rows", func(_, v []byte) []byte { return v }).To(s.Output())
	case "W6":
		// The app's own count of processed records holds those of repartition topics, too.
		count = new(atomic.Int64)
		in.KeyBy("items", func(v []byte) int64 {
			count.Add(1)
			return workload.Amount(v) % workload.Items
		}).
			Count("per-item").
			Changes(func(c topology.Change[int64, int64]) (int64, bool) { return c.New - c.Old, true }).
			TryKeyBy("categories", func(_ *topology.Context, item, _ int64) (int64, error) { return item % workload.Categories, nil }).
			Sum("per-category", func(n int64) int64 { return n }).
			To(s.Output())
	}
	return t, count
}

func even(value []byte) bool { return workload.Amount(value)&1 == 0 }

func addOne(value []byte) []byte {
	value = bytes.Clone(value)
	workload.SetAmount(value, workload.Amount(value)+1)
	return value
}

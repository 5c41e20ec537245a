package unit

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Hopping is the cost of a count over hopping windows.
type Hopping struct {
	Size, Hop time.Duration
	Sliced    bool // false: a function that does not merge, so that every window is a row
	Records   int
	Panes     int
	CPU       float64 // microseconds per record, firings included
}

// RunHopping counts records per key of 1,000 in windows that hop every second. Every key gets perHop records per hop on
// average, so that the windows of all sizes have the same number of panes. It measures as many records again as a window
// holds, at least a million, after the first window is full.
func RunHopping(size time.Duration, perHop int, sliced bool) (Hopping, error) {
	const keys, hop = 1000, time.Second
	h := Hopping{Size: size, Hop: hop, Sliced: sliced}
	top := topology.New("unit")
	in := top.Stream[[]byte, []byte]("in").Timestamps(nil, watermark.Ascending()).Window(window.Hopping(size, hop))
	if sliced {
		in.Count("n").To("out")
	} else {
		in.TryAggregate("n", func(_ *topology.Context, _ []byte, n int64, _ []byte) (int64, error) { return n + 1, nil }).To("out")
	}
	err := with(top, func(t *task) error {
		perSecond := keys * perHop
		warm := perSecond * int(size/hop)
		h.Records = max(1_000_000, warm)
		if !sliced {
			h.Records = min(h.Records, 500_000)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		value := make([]byte, 100)
		var before float64
		var panes int
		for i := range warm + h.Records {
			if i == warm {
				before, panes = cpuSeconds(), t.sent
			}
			r := processor.Record{
				Topic: "in", Offset: int64(i), Time: event(int64(i) * 1000 / int64(perSecond)),
				Key: binary.BigEndian.AppendUint64(nil, rng.Uint64N(keys)), Value: value,
			}
			if err := t.process(&r, 64<<20); err != nil {
				return err
			}
			if i%50_000 == 49_999 { // a commit every tenth of a second at 500,000 records/s
				if err := t.commit(); err != nil {
					return err
				}
			}
		}
		h.CPU = (cpuSeconds() - before) * 1e6 / float64(h.Records)
		h.Panes = t.sent - panes
		if h.Panes == 0 {
			return fmt.Errorf("unit: no pane")
		}
		return nil
	})
	return h, err
}

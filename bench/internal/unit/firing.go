package unit

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Firing is what happens when very many windows fire at one step of the watermark.
type Firing struct {
	Windows      int
	Overlay      int64         // limit of what is uncommitted, bytes
	Most         int64         // the most that was uncommitted, bytes
	Transactions int           // the firing took
	Longest      time.Duration // between two commits
	Whole        time.Duration
	CPU          float64 // microseconds per window
}

// RunFiring gives each of n keys a record in the same minute and then lets the minute end.
func RunFiring(n int, overlay int64) (Firing, error) {
	f := Firing{Windows: n, Overlay: overlay}
	top := topology.New("unit")
	top.Stream[[]byte, []byte]("in").Timestamps(nil, watermark.Ascending()).Window(window.Tumbling(time.Minute)).Count("n").To("out")
	err := with(top, func(t *task) error {
		for i := range n {
			r := processor.Record{Topic: "in", Offset: int64(i), Time: event(1), Key: binary.BigEndian.AppendUint64(nil, uint64(i))}
			if err := t.process(&r, overlay); err != nil {
				return err
			}
			if i%50_000 == 49_999 {
				if err := t.commit(); err != nil {
					return err
				}
			}
		}
		if err := t.commit(); err != nil {
			return err
		}
		sent, start, cpu := t.sent, time.Now(), cpuSeconds()
		r := processor.Record{Topic: "in", Offset: int64(n), Time: event(120_000), Key: []byte("next")}
		if err := t.proc.Process(0, &r); err != nil {
			return err
		}
		last := start
		end := func() error {
			if err := t.commit(); err != nil {
				return err
			}
			now := time.Now()
			f.Longest = max(f.Longest, now.Sub(last))
			last = now
			f.Transactions++
			return nil
		}
		for t.proc.Moved() {
			done, err := t.proc.Advance(firings)
			if err != nil {
				return err
			}
			held := t.state.Dirty() + t.bytes
			f.Most = max(f.Most, held)
			// An instance commits when a tenth of a second has passed, or when the overlay is full.
			if !done && (held >= overlay || time.Since(last) >= 100*time.Millisecond) {
				if err := end(); err != nil {
					return err
				}
			}
		}
		if err := end(); err != nil {
			return err
		}
		f.Whole, f.CPU = time.Since(start), (cpuSeconds()-cpu)*1e6/float64(n)
		if got := t.sent - sent; got != n {
			return fmt.Errorf("unit: %d windows have fired, not %d", got, n)
		}
		return nil
	})
	return f, err
}

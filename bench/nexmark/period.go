package nexmark

import (
	"time"

	"github.com/tidemark/tidemark/topology"
)

// period is the length of the windows of q12.
const period = 10 * time.Second

func periods(bids bids, out string) {
	p := bidsOfPeriod{
		counts: topology.KeyValue[int64, int64]("bids-of-period"),
		ends:   topology.ProcessingTimers[int64]("ends-of-periods"),
	}
	ofBidder(bids).
		ProcessWith("periods", func() topology.Processor[int64, int64, int64, Activity] { return p }, p.counts, p.ends).
		To(out)
}

// bidsOfPeriod counts the bids of each bidder until a timer of processing time ends the period.
type bidsOfPeriod struct {
	counts *topology.KeyValueStore[int64, int64]
	ends   *topology.TimerStore[int64]
}

// Process counts a bid. Its period is that of the moment; the one before may be over without its timer having fired yet.
func (p bidsOfPeriod) Process(out topology.Emitter[int64, Activity], bid topology.Record[int64, int64]) error {
	end, open, err := p.ends.Get(out, "end")
	if err != nil {
		return err
	}
	now := bid.Now()
	if open && end <= now {
		if err := p.finish(out, bid.Key, end); err != nil {
			return err
		}
		open = false
	}
	if !open {
		length := period.Milliseconds()
		if err := p.ends.Set(out, "end", (now/length+1)*length); err != nil {
			return err
		}
	}
	n, _, err := p.counts.Get(out, bid.Key)
	if err != nil {
		return err
	}
	return p.counts.Put(out, bid.Key, n+1)
}

// OnTimer ends a period.
func (p bidsOfPeriod) OnTimer(out topology.Emitter[int64, Activity], t topology.Timer[int64]) error {
	return p.finish(out, t.Key, t.Time)
}

func (p bidsOfPeriod) finish(out topology.Emitter[int64, Activity], bidder, end int64) error {
	n, _, err := p.counts.Get(out, bidder)
	if err != nil {
		return err
	}
	out.EmitAt(end, bidder, Activity{bidder, n, end - period.Milliseconds(), end})
	return p.counts.Delete(out, bidder)
}

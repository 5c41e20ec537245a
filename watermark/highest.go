package watermark

// highest follows the highest time seen, at a distance: ascending, bounded
// out-of-orderness and stream time, on event time or append time.
type highest struct {
	position
	delay    int64
	appended bool
}

func newHighest(delay int64, appended bool) *highest {
	return &highest{position: position{seen: Unknown, w: Unknown}, delay: delay, appended: appended}
}

func (g *highest) Observe(r *Record) {
	t := r.Time
	if g.appended {
		t = r.Appended
	}
	if t > g.seen {
		g.seen = t
		g.w = max(g.w, below(t, g.delay)) // W may come from a state with a shorter delay
	}
}

func (g *highest) Watermark() int64 { return g.w }

func (g *highest) Append(dst []byte) []byte { return g.append(dst) }

func (g *highest) Restore(b []byte) error {
	_, err := g.restore(b)
	return err
}

package watermark

import "math"

// Reckoning is where another instance is taken to be between two reports of its lowest watermark. A report is old when it
// is read: instances that waited for what the others said last would read a backlog no faster than the drift allowed per
// report. So the reckoning goes on from the last report at the pace between the last two.
//
// The zero value knows of no report. One report says nothing about the pace, so nobody is judged by it.
type Reckoning struct {
	reports int     // 0, 1, or 2 for more
	low     int64   // as last reported
	sent    int64   // when, by the wall clock of who reported, in ms
	heard   int64   // when it was read, by our steady clock, in ms
	pace    float64 // event time per time
}

// Report takes in a report of a lowest watermark: sent is the wall clock of its sender, heard the steady clock of the
// reader, both in ms.
func (r *Reckoning) Report(low, sent, heard int64) {
	r.pace = 0
	if gone := sub(sent, r.sent); r.reports > 0 && gone > 0 {
		r.pace = max(0, float64(sub(low, r.low))/float64(gone))
	}
	r.reports = min(r.reports+1, 2)
	r.low, r.sent, r.heard = low, sent, heard
}

// Low returns the watermark reckoned for a moment, given by our wall clock and our steady clock in ms. It goes no further
// than horizon ms beyond the last report, whatever the two wall clocks say, and there is none, false, once nothing was
// heard for three times that.
func (r *Reckoning) Low(wall, steady, horizon int64) (low int64, ok bool) {
	if r.reports < 2 || sub(steady, r.heard) > 3*horizon {
		return 0, false
	}
	ahead := r.pace * float64(min(max(sub(wall, r.sent), 0), horizon))
	if ahead > float64(math.MaxInt64/2) {
		return math.MaxInt64, true
	}
	return sub(r.low, -int64(ahead)), true
}

package watermark

import "time"

// BroadcastOptions say how often a task announces its watermark. The zero value
// of a field means its default.
type BroadcastOptions struct {
	// Granularity is the least advance of W worth a record. Default 100 ms.
	Granularity time.Duration
	// Interval is the least time between two records about W alone. Default 200 ms.
	Interval time.Duration
	// Refresh is the time after which a record is due though nothing changed, for
	// readers that start or have lost their state. Default 10 s.
	Refresh time.Duration
}

func (o BroadcastOptions) millis() (granularity, interval, refresh int64) {
	ms := func(d, def time.Duration) int64 {
		if d <= 0 {
			d = def
		}
		return d.Milliseconds()
	}
	return ms(o.Granularity, 100*time.Millisecond), ms(o.Interval, 200*time.Millisecond), ms(o.Refresh, 10*time.Second)
}

// Broadcast is what a task remembers of the last control record about it. The
// zero value remembers none: the first transaction of an owner announces
// everything.
//
// It is a small value without pointers. Copy it when a transaction is sealed,
// and put the copy in the place of the committed one when it is committed; an
// abort goes back to the committed one, because its records were never seen.
type Broadcast struct {
	sent  bool
	state State
	at    int64
	w     int64
}

// Due reports whether a control record is to be sent at now (milliseconds of a
// clock that does not jump): there was none yet, the state changed, W moved far
// enough and the last record is old enough, or a refresh is due.
func (b *Broadcast) Due(now, w int64, state State, o BroadcastOptions) bool {
	if !b.sent || state != b.state {
		return true
	}
	granularity, interval, refresh := o.millis()
	age := sub(now, b.at)
	return age < 0 || age >= refresh || age >= interval && sub(w, b.w) >= granularity
}

// Sent notes that a control record was sent at now.
func (b *Broadcast) Sent(now, w int64, state State) { *b = Broadcast{true, state, now, w} }

// Reset forgets everything.
func (b *Broadcast) Reset() { *b = Broadcast{} }

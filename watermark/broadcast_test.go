package watermark

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBroadcast(t *testing.T) {
	for _, c := range []struct {
		name   string
		now, w int64
		state  State
		due    bool
	}{
		{"at once", 1000, 50, Active, false},
		{"far, but too soon", 1199, 10_000, Active, false},
		{"far and later", 1200, 150, Active, true},
		{"later, but not far", 9000, 149, Active, false},
		{"refresh", 11000, 50, Active, true},
		{"not yet", 10999, 50, Active, false},
		{"idle", 1000, 50, Idle, true},
		{"done", 1000, Finished, Done, true},
		{"the clock was set back", 999, 50, Active, true},
	} {
		var b Broadcast
		if !b.Due(c.now, Unknown, c.state, BroadcastOptions{}) {
			t.Errorf("%s: nothing to say at first", c.name)
		}
		b.Sent(1000, 50, Active)
		if got := b.Due(c.now, c.w, c.state, BroadcastOptions{}); got != c.due {
			t.Errorf("%s: %v", c.name, got)
		}
		b.Reset()
		if b != (Broadcast{}) {
			t.Errorf("%s: remembers %+v", c.name, b)
		}
	}
	// WM-OVERFLOW: from the unknown to the known is far.
	var b Broadcast
	b.Sent(0, Unknown, Active)
	if !b.Due(200, 1<<62, Active, BroadcastOptions{}) {
		t.Error("the first W is not announced")
	}
	o := BroadcastOptions{Granularity: time.Second, Interval: time.Minute, Refresh: time.Hour}
	b.Sent(0, 0, Active)
	if b.Due(60_000, 999, Active, o) || b.Due(59_999, 1000, Active, o) || !b.Due(60_000, 1000, Active, o) || !b.Due(3_600_000, 0, Active, o) {
		t.Error("options are not heeded")
	}
}

// A task that commits and aborts at random: what readers have seen committed is
// never older than the refresh, never in another state, and never behind by more
// than the granularity once the interval is over.
func TestBroadcastCommits(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var committed Broadcast
	var seen Entry
	seenAt, sent := int64(-1), 0
	w, state := int64(0), Active
	const ticks = 20000
	for n := range int64(ticks) {
		now := n * 50
		w += rng.Int64N(30)
		if rng.IntN(200) == 0 {
			state = Active + Idle - state
		}
		sealed := committed
		due := sealed.Due(now, w, state, BroadcastOptions{})
		if due {
			sealed.Sent(now, w, state)
		}
		if rng.IntN(5) == 0 {
			continue // aborted: the record was never seen, and neither was sealed
		}
		if committed = sealed; due {
			seen, seenAt = Entry{State: state, W: w}, now
			sent++
		}
		age := now - seenAt
		if seenAt < 0 || seen.State != state || age >= 10_000 || age >= 200 && w-seen.W >= 100 {
			t.Fatalf("seed %d: at %d with W %d, %v: seen %+v at %d", seed, now, w, state, seen, seenAt)
		}
	}
	if sent < ticks/40 || sent > ticks/4 {
		t.Errorf("seed %d: %d records in %d ticks", seed, sent, ticks)
	}
}

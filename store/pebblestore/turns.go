package pebblestore

import "time"

const (
	// yieldTime is how long after a read that waited the next one is expected.
	yieldTime = 100 * time.Millisecond
	// yieldBytes is how much a background fetch brings at most meanwhile.
	yieldBytes = 1 << 20
)

// turns says whose turn it is to fetch. Reads wait for one chunk after the other, and everything that is fetched in the
// background meanwhile makes each of them slower: while there are such reads, only one background fetch of a database is
// under way, and a short one. It is under lazy.mu.
type turns struct {
	reads      int       // that wait for a chunk; compactions do not count
	last       time.Time // when one of them had it
	background int       // fetches in progress
}

// reading tells whether reads wait for chunks at present.
func (t *turns) reading(now time.Time) bool {
	return t.reads > 0 || !t.last.IsZero() && now.Sub(t.last) < yieldTime
}

package watermark

import "time"

// probes is the number of probes a partition is worth while it is silent: a
// first one after this part of the time-out, and again when one fails.
const probes = 8

// Idleness finds out whether one source partition is silent. It is fed with
// facts and the times at which they were learned, in milliseconds of a
// monotonic clock, and is a pure function of them.
//
// A partition is idle when, for the whole time-out, it was not paused, had no
// record waiting, and was known to be read to its end: by a first proof, and by
// another one at the end of the time-out. The time-out runs from the latest of
// the last record, the end of the last pause, the moment the last waiting record
// was taken, and the first proof. Silence alone proves nothing: the broker may
// be out of reach, or an open transaction may hide records.
//
// Only partitions of external topics have an Idleness. A repartition input is
// idle when its upstream tasks say so.
type Idleness struct {
	after, retry int64
	since        int64 // silent, not paused and nothing waiting since
	first, last  int64 // proofs since then, if proven
	probed       int64 // last probe of any result
	proven       bool
	paused       bool
	buffered     bool
	began        bool // a record was seen
	credit       bool // the silence is older than what since says: one proof is enough
}

// NewIdleness returns the state of a partition that is being read from now on.
// after is Settings.IdleAfter; negative for never idle.
func NewIdleness(now int64, after time.Duration) Idleness {
	ms := max(after.Milliseconds(), 1)
	if after < 0 {
		ms = -1
	}
	return Idleness{after: ms, retry: max(ms/probes, 1), since: now, probed: now}
}

// Resume notes that the partition was idle at the last commit and is read on
// from there. The first proof makes it idle at once, since it shows that no
// record came in between.
func (i *Idleness) Resume() { i.credit = !i.began }

// Record notes that records were fetched. A fetch that reached the end of the
// partition is a proof as well: call Probed after it.
func (i *Idleness) Record(now int64) {
	i.began, i.credit = true, false
	i.restart(now)
}

// Paused notes that fetching stopped, for whatever reason of ours, or goes on.
func (i *Idleness) Paused(now int64, paused bool) {
	if i.paused && !paused {
		i.restart(now) // what came meanwhile is unknown, and proofs are of before
	}
	i.paused = paused
}

// Buffered notes whether fetched records wait to be processed.
func (i *Idleness) Buffered(now int64, buffered bool) {
	if i.buffered && !buffered {
		i.since = max(i.since, now) // proofs stay: they are about the end of the log
	}
	i.buffered = buffered
}

// Probed notes the answer of a fetch at the current position. It is a proof
// only if position >= last stable offset and last stable offset = high
// watermark; an error or a time-out is not.
func (i *Idleness) Probed(now int64, proof bool) {
	i.probed = now
	switch {
	case !proof:
		i.proven, i.credit = false, false
	case !i.proven:
		i.proven, i.first, i.last = true, now, now
	default:
		i.last = max(i.last, now)
	}
}

// Empty notes a proof that the log holds no record at all: start = end. A
// partition that never had one is idle at once; it is new, and the others need
// not wait for it.
func (i *Idleness) Empty(now int64) {
	if !i.began {
		i.credit = true
	}
	i.Probed(now, true)
}

func (i *Idleness) restart(now int64) {
	i.since, i.probed, i.proven = now, now, false
}

// Idle reports whether the partition is idle, and when the next probe is due:
// at once if next <= now, never if next is Finished. The state changes only by
// facts, so there is nothing else to wait for. An idle partition is probed again
// after every time-out.
func (i *Idleness) Idle(now int64) (idle bool, next int64) {
	switch {
	case i.after < 0 || i.paused || i.buffered:
		return false, Finished
	case !i.proven:
		return false, add(i.probed, i.retry)
	}
	due := add(max(i.since, i.first), i.after)
	if i.credit {
		due = i.first
	}
	if i.last >= due {
		return true, add(i.last, i.after)
	}
	return false, due
}

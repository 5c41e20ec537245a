package engine

import (
	"context"
	"time"
)

// While the queues together are full, the poll loop waits for the workers. That would last for ever where what fills them
// waits for a partition of which nothing is queued: records too far ahead of it (see align.go), or those of the other input
// of a join. Then the partitions that fill the queues are paused, and the loop goes on for the others, which come one poll
// at a time: what is queued exceeds its limit by one poll.

// waitForRoom waits until the workers have taken half of what is queued, or something else is to be done. It returns true if
// a partition is starved instead.
func (s *source) waitForRoom(ctx context.Context) (starved bool) {
	s.waiting.Store(true)
	defer s.waiting.Store(false)
	for s.e.queued.Load() >= s.e.cfg.QueueBytes/2 && ctx.Err() == nil {
		// Pausing throws away what the client has fetched: not before a while has passed.
		if s.tight.Load() && s.starved() {
			return true
		}
		if s.resume.Load() {
			return false // a partition that was paused has room again
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		case <-s.e.cfg.Clock.After(100 * time.Millisecond):
			// A worker may also have drained between the check and the flag.
			if s.starved() {
				return true
			}
		}
		s.mu.Lock()
		pending := len(s.seeks) > 0
		s.mu.Unlock()
		if pending {
			return false
		}
	}
	return false
}

// starved reports whether a worker holds records back for others, and there is a partition with nothing queued that may
// have some.
func (s *source) starved() bool {
	held := false
	for _, w := range s.e.workers {
		held = held || w.starved.Load()
	}
	if !held {
		return false
	}
	for _, in := range s.local {
		if in.live && !in.paused.Load() && in.q.bytes.Load() == 0 && (in.verify || in.fetched < in.end.Load()) {
			return true
		}
	}
	return false
}

// makeWay pauses the partitions that fill the queues.
func (s *source) makeWay() {
	s.tight.Store(true)
	share := s.e.cfg.QueueBytes / 2 / int64(max(1, len(s.local)))
	var pause map[string][]int32
	for _, in := range s.local {
		if in.live && !in.paused.Load() && in.q.bytes.Load() > share {
			if pause == nil {
				pause = make(map[string][]int32)
			}
			in.paused.Store(true)
			pause[in.topic] = append(pause[in.topic], in.partition)
		}
	}
	if pause != nil {
		s.client.PauseFetchPartitions(pause)
	}
}

package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
)

// With every partition paused a poll brings nothing: it must be woken when a worker has made room.
func TestPausedPartitionsResume(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const n = 45_000 // more than one poll brings
		s.feed("in", 0, n, 97)
		s.start("a", copying(), nil, func(c *engine.Config) { c.QueueBytes = 5 << 20 })
		s.copies("out", n)
	})
}

// What a commit makes of the rows that have changed counts against the limit of uncommitted writes, and a generation
// whose transaction is ending takes nothing of the limit of the next one: processing goes on meanwhile.
func TestUncommittedLimit(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const limit = 200_000
		s.feed("in", 0, 6000, 6000)
		var mu sync.Mutex
		var commits []engine.CommitInfo
		var inTime []float64 // records processed when EndTxn has been held for a while
		n := s.prepare("a", counting(), nil, func(c *engine.Config) {
			c.OverlayBytes, c.CommitInterval = limit, time.Minute
			c.Events.Commit = func(i engine.CommitInfo) {
				mu.Lock()
				defer mu.Unlock()
				commits = append(commits, i)
			}
		})
		n.onPoint(func(p engine.Point) {
			if p == engine.K5 {
				s.pass(time.Second) // the committer waits, the worker need not
				mu.Lock()
				defer mu.Unlock()
				inTime = append(inTime, n.metric("records_total"))
			}
		})
		n.run()
		s.await("half of the input", func() bool { return s.committed("in")[0].Offset >= 3000 })
		mu.Lock()
		defer mu.Unlock()
		sum := 0
		for i, c := range commits {
			if c.Bytes > limit*5/4 {
				t.Errorf("commit %d has %d bytes of output, the limit is %d", i, c.Bytes, limit)
			}
			sum += c.Records
			if got := inTime[i] - float64(sum); got < float64(c.Records)/2 {
				t.Errorf("%v records were processed while commit %d of %d records was ending", got, i, c.Records)
			}
		}
	})
}

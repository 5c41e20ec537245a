package engine_test

import (
	"testing"

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

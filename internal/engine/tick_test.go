package engine_test

import (
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// Deadlines count from when a record is read, also if the task had nothing to do for long.
func TestEarlyPaneAfterSilence(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		top.Stream[string, string]("in").
			Window(window.Tumbling(time.Hour), window.Early(window.Every(10*time.Second))).Count("counts").To("out")
		n := s.start("a", top, nil, nil)
		n.awaitTasks(1)
		for i := range int64(2) {
			s.pass(time.Minute)
			sent := time.Now()
			s.send(rec{topic: "in", key: []byte("k"), value: []byte("v"), ms: 1000 + i})
			s.await("the pane", func() bool { return len(s.read("out")) > int(i) })
			if took := time.Since(sent); took < 9*time.Second || took > 12*time.Second {
				t.Errorf("pane %d came after %v, the trigger is 10 s", i, took)
			}
		}
	})
}

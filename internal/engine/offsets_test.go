package engine_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
)

// F18: committed offsets that are lost, zero or rewritten are not believed: Run ends by name and nothing is
// processed again. With policy Resume the app goes on exactly where its last commit left off.
func TestF18Offsets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(s *scene)
	}{
		{"lost", func(s *scene) { s.forget("in", 0, 1) }},
		{"one partition lost", func(s *scene) { s.forget("in", 1) }},
		{"spurious zero", func(s *scene) { s.commit("in", 0, 0, "") }},
		{"rewritten back", func(s *scene) { s.commit("in", 0, 7, "") }},
		{"rewritten ahead with the old metadata", func(s *scene) {
			md := s.committed("in")[1].Metadata
			s.commit("in", 1, s.committed("in")[1].Offset+3, md)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 100, 10)
				n := s.start("a", counting(), nil, nil)
				s.counts("out", 100, 10)
				s.caughtUp("in")
				d := n.stop()
				s.feed("in", 100, 50, 10)
				c.change(s)
				n = s.start("a", counting(), d, nil)
				n.refused(engine.ErrOffsetsChanged, "task counts/", "OnOffsetsChanged", "tidemark reset")
				if got := len(s.read("out")); got < 100 || got > 150 {
					t.Errorf("%d results", got)
				}
				s.start("a", counting(), d, func(c *engine.Config) { c.OnOffsets = engine.Resume })
				s.counts("out", 150, 10)
				s.caughtUp("in")
			})
		})
	}
}

// Offsets of an earlier commit of the app's own come from a coordinator that has not loaded all of its log: one transaction
// carries them and the progress record. The app goes on from the record.
func TestCoordinatorBehind(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 100, 10)
		s.caughtUp("in")
		old := s.committed("in")
		s.feed("in", 100, 50, 10)
		s.counts("out", 150, 10)
		s.caughtUp("in")
		d := n.stop()
		for p, o := range old {
			s.commit("in", p, o.Offset, o.Metadata)
		}
		s.feed("in", 150, 50, 10)
		n = s.start("a", counting(), d, nil)
		s.counts("out", 200, 10)
		s.caughtUp("in")
		if n.said("going on from the progress record") != 2 {
			t.Error("it does not say so, once per task")
		}
	})
}

// A group with offsets and no progress, or changelogs with records and neither, belong to somebody else or to
// an unfinished reset.
func TestForeignState(t *testing.T) {
	t.Parallel()
	topics := map[string]int{"in": 1, "out": 1}
	t.Run("offsets of another program", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			s.commit("in", 0, 4, "")
			s.start("a", counting(), nil, nil).refused(engine.ErrForeignState, "group app", "app-counts-progress", "tidemark reset")
		})
	})
	t.Run("changelog with records", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			s.mustCreate("app-counts-changelog", 1, map[string]string{"cleanup.policy": "compact"})
			s.send(rec{topic: "app-counts-changelog", key: []byte("k0"), value: make([]byte, 8)})
			s.start("a", counting(), nil, nil).refused(engine.ErrForeignState, "changelogs hold records", "tidemark reset")
		})
	})
	t.Run("progress lost", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			n := s.start("a", counting(), nil, nil)
			s.counts("out", 10, 5)
			s.caughtUp("in")
			d := n.stop()
			if err := s.broker.Cluster().DeleteTopic("app-counts-progress"); err != nil {
				t.Fatal(err)
			}
			s.start("a", counting(), d, nil).refused(engine.ErrForeignState, "app-counts-progress")
		})
	})
	t.Run("offsets and progress lost", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			n := s.start("a", counting(), nil, nil)
			s.counts("out", 10, 5)
			s.caughtUp("in")
			d := n.stop()
			s.forget("in", 0)
			if err := s.broker.Cluster().DeleteTopic("app-counts-progress"); err != nil {
				t.Fatal(err)
			}
			s.start("a", counting(), d, nil).refused(engine.ErrForeignState, "changelogs hold records")
		})
	})
	// An aborted transaction is no commit: what it left in a changelog does not make it foreign.
	t.Run("only aborted records", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			s.mustCreate("app-counts-changelog", 1, map[string]string{"cleanup.policy": "compact"})
			s.transact("app-counts-changelog", kgo.TryAbort, 5)
			s.start("a", counting(), nil, nil)
			s.counts("out", 10, 5)
		})
	})
	// A first start that died before its first commit is still a first start.
	t.Run("died before the first commit", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: topics}, func(t *testing.T, s *scene) {
			s.feed("in", 0, 10, 5)
			n := s.prepare("a", counting(), nil, nil)
			n.dieAt(engine.K5, 1)
			n.run()
			<-n.done
			s.start("b", counting(), nil, nil)
			s.counts("out", 10, 5)
		})
	})
}

// C-SOURCE-EXPIRED: the committed input offset has left the log.
func TestCSourceExpired(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 120, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 120, 10)
		s.caughtUp("in")
		d := n.stop()
		s.feed("in", 120, 300, 10)
		if err := s.broker.Cluster().DeleteRecords("in", 0, 400); err != nil {
			t.Fatal(err)
		}
		s.start("a", counting(), d, nil).refused(engine.ErrSourceOffsetLost, "in/0", "120", "400")
		if got := len(s.read("out")); got != 120 {
			t.Errorf("%d results", got)
		}
	})
}

// C-SOURCE-EXPIRED while running: records are deleted before they are read.
func TestCSourceExpiredRunning(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 120, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 120, 10)
		s.caughtUp("in")
		s.net.Intercept(func(r embedded.Request) embedded.Verdict {
			return embedded.Verdict{CutRequest: r.Client == n.group() && r.Key == kmsg.Fetch.Int16()}
		})
		s.pass(200 * time.Millisecond) // the last fetch has its answer
		s.feed("in", 120, 300, 10)
		if err := s.broker.Cluster().DeleteRecords("in", 0, 400); err != nil {
			t.Fatal(err)
		}
		s.net.Intercept(nil)
		n.refused(engine.ErrSourceOffsetLost, "in/0", "400")
	})
}

// T-TRUNCATED, as far as the broker can show it: the log ends before the committed offset. (The in-process
// broker does not truncate a log; a topic made anew with the same id is out of reach as well. What is left is a
// committed offset, in both places, beyond the end.)
func TestTTruncated(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 150, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 150, 10)
		s.caughtUp("in")
		d := n.stop()
		s.claim("app-counts-progress", "in", 200)
		n = s.start("a", counting(), d, nil)
		n.refused(engine.ErrDataLoss, "in/0", "200", "150")
	})
}

// An app that starts at the latest record does so at its first start only.
func TestStartAtLatest(t *testing.T) {
	t.Parallel()
	latest := func(c *engine.Config) { c.StartAt = engine.Latest }
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		n := s.start("a", copying(), nil, latest)
		n.awaitTasks(1)
		s.feed("in", 100, 10, 10)
		s.await("10 records", func() bool { return len(s.read("out")) == 10 })
		s.caughtUp("in")
		d := n.stop()
		s.feed("in", 110, 10, 10)
		s.start("a", copying(), d, latest)
		s.await("20 records", func() bool { return len(s.read("out")) == 20 })
		if got := values(s.read("out")); got[0] != "100" || got[19] != "119" {
			t.Errorf("out holds %q", got)
		}
	})
}

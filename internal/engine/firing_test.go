package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/watermark"
)

// One step of the watermark fires more windows than a transaction may hold. The firings spread over several, the input
// waits meanwhile, what is committed in between is the watermark before the step, and a crash on the way repeats nothing
// and leaves nothing out.
func TestFiringsLargerThanATransaction(t *testing.T) {
	t.Parallel()
	const keys = 6000
	small := func(c *engine.Config) { c.OverlayBytes = 256 << 10 }
	for _, c := range []struct {
		name string
		die  engine.Point // "": nobody dies
		kept bool
	}{{"quiet", "", true}, {"killed before EndTxn", engine.K5, true}, {"killed after it", engine.K6, false}, {"killed before it is applied", engine.K7, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				n := s.start("a", tens(watermark.IdleAfter(watermark.Never)), nil, small)
				var recs []rec
				for i := range keys {
					recs = append(recs, at(0, fmt.Sprint("key-", i), 5))
				}
				s.send(recs...)
				s.caughtUp("in")
				before := n.commitCount()
				if c.die != "" {
					n.dieAt(c.die, 4)
				}
				s.send(at(0, "step", 25), at(0, "behind", 26), at(0, "behind", 27))
				between := 0
				look := func() bool {
					some := len(s.read("out")) > 0
					c := s.committed("in")[0]
					held := len(s.read("out"))
					if some && held < keys {
						between++
						if c.Offset != keys+1 {
							t.Errorf("with %d windows fired the input is committed to %d", held, c.Offset)
						}
						if md, ok, err := changelog.ParseMetadata(c.Metadata); err != nil || !ok || md.W != 4999 {
							t.Errorf("with %d windows fired the committed watermark is %d (%v)", held, md.W, err)
						}
					}
					return held >= keys
				}
				if c.die != "" {
					s.await("the crash", func() bool { look(); return n.dead() })
					d := n.remains()
					if !c.kept {
						d = nil
					}
					n = s.start("a", tens(watermark.IdleAfter(watermark.Never)), d, small)
				}
				s.await("all windows", look)
				if between == 0 {
					t.Error("all windows fired at once: the test shows nothing")
				}
				if c.die == "" && n.commitCount()-before < 5 {
					t.Errorf("%d commits", n.commitCount()-before)
				}
				s.send(at(0, "last", 45))
				s.await("the windows behind", func() bool { return len(s.read("out")) >= keys+2 })
				seen := make(map[string]int)
				for _, p := range s.panes("out") {
					seen[p.String()]++
				}
				want := map[string]int{"step[20,30)=1": 1, "behind[20,30)=2": 1}
				for i := range keys {
					want[fmt.Sprintf("key-%d[0,10)=1", i)] = 1
				}
				for k, v := range want {
					if seen[k] != v {
						t.Errorf("pane %s is there %d times", k, seen[k])
					}
				}
				if len(seen) != len(want) {
					t.Errorf("%d different panes, want %d", len(seen), len(want))
				}
			})
		})
	}
}

// A task that is revoked in the middle of its firings commits how far it has got, and the next owner goes on there.
func TestFiringsMove(t *testing.T) {
	t.Parallel()
	const keys = 6000
	small := func(c *engine.Config) { c.OverlayBytes = 128 << 10 }
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", tens(watermark.IdleAfter(watermark.Never)), nil, small)
		var recs []rec
		for i := range keys {
			recs = append(recs, at(0, fmt.Sprint("key-", i), 5))
		}
		s.send(recs...)
		s.caughtUp("in")
		n.onPoint(func(p engine.Point) {
			if p == engine.K5 {
				stand(50 * time.Millisecond) // so that the end comes in the middle
			}
		})
		s.send(at(0, "step", 25))
		s.await("some windows", func() bool { return len(s.read("out")) > 0 })
		d := n.stop()
		held := len(s.read("out"))
		if held >= keys {
			t.Fatal("all windows fired before the stop: the test shows nothing")
		}
		s.start("b", tens(watermark.IdleAfter(watermark.Never)), d, small)
		s.await("all windows", func() bool { return len(s.read("out")) >= keys })
		seen := make(map[string]int)
		for _, p := range s.panes("out") {
			seen[p.key]++
		}
		if len(seen) != keys || len(s.read("out")) != keys {
			t.Errorf("%d panes of %d keys", len(s.read("out")), len(seen))
		}
	})
}

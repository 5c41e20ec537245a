package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

const windowLog = "app-counts-changelog"

// lenient has windows of ten seconds with twenty seconds of lateness.
func lenient() *topology.Topology { return lenientFor(20 * time.Second) }

func lenientFor(lateness time.Duration) *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Timestamps(nil, watermark.IdleAfter(watermark.Never)).
		Window(window.Tumbling(10*time.Second), window.AllowedLateness(lateness)).Count("counts").To("out")
	return top
}

// windowsPast feeds two keys in every window from one number up to another, and waits until all but the last have fired.
func (s *scene) windowsPast(from, to int) {
	s.t.Helper()
	for w := from; w < to; w++ {
		s.send(at(0, "a", float64(10*w+1)), at(0, "b", float64(10*w+5)))
		s.pass(200 * time.Millisecond)
	}
	s.await("the panes", func() bool { return len(s.read("out")) >= 2*(to-1) })
}

// exact checks that every window up to the last one has counted one record of each key, once.
func (s *scene) exact(windows int) {
	s.t.Helper()
	var want []string
	for w := range windows {
		for _, k := range []string{"a", "b"} {
			want = append(want, fmt.Sprintf("%s[%d,%d)=1", k, 10*w, 10*w+10))
		}
	}
	s.saw("out", want...)
}

// The changelog of windows is cut off behind the watermark, and a restore finds what it needs: from a disk that is older
// than the start of the log, and from nothing.
func TestTrimWindows(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"old disk", "no disk"} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
			simulate(t, o, func(t *testing.T, s *scene) {
				n := s.start("a", lenient(), nil, nil)
				s.windowsPast(0, 4)
				s.caughtUp("in")
				old := n.stop().found()
				held := s.bounds(windowLog)[tp(windowLog, 0)].HighWatermark
				n = s.start("a", lenient(), n.disk, nil)
				s.windowsPast(4, 40)
				s.caughtUp("in")
				s.await("a trimmed log", func() bool { return s.bounds(windowLog)[tp(windowLog, 0)].Start > held })
				n.stop()
				d := storage(nil)
				if c == "old disk" {
					d = old
				}
				n = s.start("a", lenient(), d, nil)
				n.awaitTasks(1)
				b := s.bounds(windowLog)[tp(windowLog, 0)]
				if r := n.restored(); len(r) != 1 || r[0].Total > b.HighWatermark-b.Start || (r[0].Source == "local") != (c == "old disk") {
					t.Errorf("restores %+v, the log is %+v", r, b)
				}
				// The last windows are still open for late records: what was restored of them counts.
				s.send(at(0, "a", 381), at(0, "a", 391), at(0, "a", 401), at(0, "b", 401))
				s.await("the late panes", func() bool { return len(s.read("out")) >= 81 })
				var got []string
				for _, p := range s.panes("out") {
					if p.bounds.Start >= 380_000 {
						got = append(got, p.String())
					}
				}
				if want := "[a[380,390)=1 a[380,390)=2 LATE#1 a[390,400)=2 b[380,390)=1 b[390,400)=1]"; fmt.Sprint(got) != want {
					t.Errorf("panes %v\nwant %v", got, want)
				}
				if late := s.read("app-late"); len(late) != 0 {
					t.Errorf("%d late records", len(late))
				}
			})
		})
	}
}

// F17 for a trimmed changelog: it begins above what the last commit needs, so rows are lost, and the app says so; with a
// disk that is complete nothing is.
func TestTrimmedTooFar(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("disk kept=%v", kept), func(t *testing.T) {
			t.Parallel()
			o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
			simulate(t, o, func(t *testing.T, s *scene) {
				n := s.start("a", lenient(), nil, nil)
				s.windowsPast(0, 20)
				s.caughtUp("in")
				d := n.stop()
				end := s.bounds(windowLog)[tp(windowLog, 0)].HighWatermark
				if err := s.broker.Cluster().DeleteRecords(windowLog, 0, end-1); err != nil {
					t.Fatal(err)
				}
				if !kept {
					n = s.start("a", lenient(), nil, nil)
					n.refused(engine.ErrChangelogTruncated, windowLog, "tidemark reset")
					return
				}
				s.start("a", lenient(), d, nil)
				s.windowsPast(20, 25)
				s.exact(24)
			})
		})
	}
}

// A window's changelog that compacts only, as one of a key-value store does, would grow for ever: it is refused with the
// command that repairs it.
func TestTrimConfig(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate(windowLog, 1, map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime", "retention.ms": "1000"})
		n := s.start("a", lenient(), nil, nil)
		n.refused(engine.ErrTopicConfig, "cleanup.policy", "cleanup.policy=[compact,delete]", "retention.ms=-1")
	})
}

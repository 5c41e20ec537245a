package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// A directory that can be used but lacks much of the changelogs competes with the snapshots. One that loses stays as it was until
// all of the snapshot is here, and is used after all if that turns out to be of no use; the choice is logged.
func TestLocalStateIsExpensive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		replay float64 // records a second
		plan   func(objects.Op) objects.Fault
		source string
		tail   int64
	}{
		{"the snapshot is nearer", 100, nil, "snapshot", 50},
		{"replay is cheap", 100e3, nil, "local", 1050},
		{"fetching is dear", 100, nil, "local", 1050},
		{"the files are damaged", 100, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpGet && strings.Contains(op.Key, "/sst/") {
				return objects.Fault{Damage: objects.Flip(100)}
			}
			return objects.Fault{}
		}, "local", 1050},
		{"the files are out of reach", 100, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpGet && strings.Contains(op.Key, "/sst/") {
				return objects.Fault{Err: fmt.Errorf("503 SlowDown")}
			}
			return objects.Fault{}
		}, "local", 1050},
		{"the manifests are gone", 100, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpGet {
				return objects.Fault{Err: objects.ErrNotFound}
			}
			return objects.Fault{}
		}, "local", 1050},
	} {
		for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
			t.Run(fmt.Sprintf("%s mode=%d", c.name, mode), func(t *testing.T) {
				t.Parallel()
				simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
					mem := objects.NewMem()
					a := s.snapping("a", newPebbles(), mem, mode)
					a.run()
					s.feed("in", 0, 300, 100)
					s.counts("out", 300, 100)
					a.snapshots(1)
					old := a.stop().(*pebbles).found().(*pebbles)
					a = s.snapping("a", a.disk.(*pebbles), mem, mode, func(c *engine.Config) { c.Snapshots.Interval = time.Hour })
					a.run()
					s.feed("in", 300, 1000, 100)
					s.counts("out", 1300, 100)
					a.stop()
					if c.name != "fetching is dear" {
						a = s.snapping("a", a.disk.(*pebbles), mem, mode)
						a.run()
						a.snapshots(1)
						a.stop()
					}
					a = s.snapping("a", a.disk.(*pebbles), mem, mode, func(c *engine.Config) { c.Snapshots.Interval = time.Hour })
					a.run()
					s.feed("in", 1300, 50, 100)
					s.counts("out", 1350, 100)
					s.caughtUp("in")
					a.stop()
					b := s.snapping("a", old, objects.WithFaults(mem, nil, func(op objects.Op) objects.Fault {
						if c.plan == nil {
							return objects.Fault{}
						}
						return c.plan(op)
					}), mode, func(config *engine.Config) {
						config.Snapshots.ReplayRate = c.replay
						if c.name == "fetching is dear" {
							config.Snapshots.FetchRate = 100
						}
					})
					b.run()
					s.feed("in", 1350, 100, 100)
					s.counts("out", 1450, 100)
					r := b.restored()
					if len(r) == 0 || r[len(r)-1].Source != c.source || r[len(r)-1].Records > c.tail || r[len(r)-1].Records < 50 {
						t.Errorf("restored %+v, want from %s", r, c.source)
					}
					if n := b.said("restore chosen"); (n > 0) != (c.replay < 1000) {
						t.Errorf("%d choices", n)
					}
					if n := b.said("task opens again"); n > 0 {
						t.Errorf("opened again %d times", n)
					}
				})
			})
		}
	}
}

// Fifty windows that a snapshot holds have expired, and left the changelog, since it was made; more have begun. What the
// snapshot and the rest of the log give is what the log alone gives, and late records find their windows.
func TestTrimmedSinceSnapshot(t *testing.T) {
	t.Parallel()
	for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
		t.Run(fmt.Sprint("mode=", mode), func(t *testing.T) {
			t.Parallel()
			o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
			simulate(t, o, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				snapping := func(name string, d *pebbles, change func(*engine.Snapshots)) *node {
					n := s.snappingAs(name, lenientFor(1000*time.Second), d, store, mode, func(c *engine.Config) { change(c.Snapshots) })
					n.run()
					return n
				}
				never := func(c *engine.Snapshots) { c.Interval = time.Hour }
				a := snapping("a", newPebbles(), never)
				s.windowsPast(0, 50)
				s.caughtUp("in")
				front := s.bounds(windowLog)[tp(windowLog, 0)].HighWatermark
				s.windowsPast(50, 100)
				a.stop()
				a = snapping("a", a.disk.(*pebbles), func(*engine.Snapshots) {})
				a.snapshots(1)
				a.stop()
				m, err := s.newest(store)
				if err != nil {
					t.Fatal(err)
				}
				held, _ := m.End("counts")
				a = snapping("a", a.disk.(*pebbles), never)
				s.windowsPast(100, 156)
				s.caughtUp("in")
				s.await("a log without 50 of the windows", func() bool { return s.bounds(windowLog)[tp(windowLog, 0)].Start >= front })
				a.stop()
				if at := s.bounds(windowLog)[tp(windowLog, 0)].Start; at >= held {
					t.Fatalf("the log begins at %d, the snapshot ends at %d", at, held)
				}
				ways := make(map[string]map[string]string)
				for from, rate := range map[string]float64{"changelog": 1, "snapshot": 1e12} {
					n := snapping(from, newPebbles(), func(c *engine.Snapshots) { c.Interval, c.FetchRate = time.Hour, rate })
					n.awaitTasks(1)
					if r := n.restored(); len(r) != 1 || !strings.HasSuffix(r[0].Source, from) {
						t.Errorf("restored %+v, want from %s", r, from)
					}
					if mode == engine.RestoreLazy && from == "snapshot" {
						s.await("everything is here", func() bool { return n.said("snapshot is here") == 1 })
					}
					ways[from] = rows(t, n.stop(), processor.TaskID{Sub: "counts", Partition: 0}, specsOf(t, lenientFor(1000*time.Second)))
				}
				if d := cmp.Diff(ways["changelog"], ways["snapshot"]); len(ways["changelog"]) < 200 || d != "" {
					t.Errorf("%d rows; those from the snapshot differ (-changelog +snapshot):\n%s", len(ways["changelog"]), d)
				}
				snapping("last", newPebbles(), func(c *engine.Snapshots) { c.FetchRate = 1e12 })
				// One for a window that has expired, one for a window of the snapshot, one for a later one.
				s.send(at(0, "a", 401), at(0, "a", 901), at(0, "b", 1101))
				s.windowsPast(156, 160)
				s.await("the late record", func() bool { return len(s.read("app-late")) == 1 })
				var late []string
				for _, p := range s.panes("out") {
					if strings.Contains(p.String(), "LATE") {
						late = append(late, p.String())
					}
				}
				if want := "[a[900,910)=2 LATE#1 b[1100,1110)=2 LATE#1]"; fmt.Sprint(late) != want {
					t.Errorf("panes %v, want %v", late, want)
				}
			})
		})
	}
}

func specsOf(t *testing.T, top *topology.Topology) []store.Spec {
	t.Helper()
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Subs[0].Stores
}

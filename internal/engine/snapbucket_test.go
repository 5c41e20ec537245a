package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/internal/rate"
)

// refs returns the snapshots that the last progress record of task 0 names, the oldest first.
func (s *scene) refs() []snapshot.Ref {
	s.t.Helper()
	const topic = "app-counts-progress"
	tail, err := s.reader.ReadTail(s.t.Context(), topic, 0, s.bounds(topic)[tp(topic, 0)].HighWatermark)
	if err != nil || tail.Record == nil {
		s.t.Fatal(tail, err)
	}
	refs, err := snapshot.DecodeRefs(tail.Record.Section(changelog.SectionSnapshots))
	if err != nil {
		s.t.Fatal(err)
	}
	return refs
}

// newest reads all of the newest snapshot. The error says why it is of no use.
func (s *scene) newest(store objects.Store) (*snapshot.Manifest, error) {
	s.t.Helper()
	refs := s.refs()
	if len(refs) == 0 {
		return nil, errors.New("there is none")
	}
	m, err := snapshot.Load(s.t.Context(), store, refs[len(refs)-1])
	if err != nil {
		return nil, err
	}
	return m, snapshot.Verify(s.t.Context(), store, m, snapshot.Options{})
}

// outputs is everything in out, in its order.
func (s *scene) outputs() (all []string) {
	for _, r := range s.read("out") {
		all = append(all, fmt.Sprintf("%d %s %x", r.partition, r.key, r.value))
	}
	return all
}

// F8: an object store that takes two seconds for every request, takes nothing, or is down, for ten minutes. The output is that of
// an app without snapshots, also when the task moves meanwhile; commits go on at their pace; the third failure in a row is an
// alarm; and when it is over there are snapshots again.
func TestBucketTrouble(t *testing.T) {
	t.Parallel()
	const (
		step   = 5 * time.Second
		before = 12  // steps
		bad    = 120 // ten minutes
		after  = 24
	)
	var plain []string
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.start("a", counting(), nil, nil)
		for i := range before + bad + after {
			s.feed("in", i*10, 10, 10)
		}
		s.counts("out", 10*(before+bad+after), 10)
		plain = s.outputs()
	})
	for _, c := range []struct {
		name  string
		fails bool
		plan  func(objects.Op) objects.Fault
	}{
		{"slow", false, func(objects.Op) objects.Fault { return objects.Fault{Delay: 2 * time.Second} }},
		{"read-only", true, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpPut || op.Kind == objects.OpDelete {
				return objects.Fault{Err: errors.New("403 AccessDenied")}
			}
			return objects.Fault{}
		}},
		{"down", true, func(objects.Op) objects.Fault { return objects.Fault{Err: errors.New("connection refused")} }},
		{"silent", true, func(objects.Op) objects.Fault {
			return objects.Fault{Delay: 30 * time.Second, Err: errors.New("i/o timeout")}
		}},
	} {
		for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
			t.Run(fmt.Sprintf("%s mode=%d", c.name, mode), func(t *testing.T) {
				t.Parallel()
				simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
					mem := objects.NewMem()
					var trouble atomic.Bool
					store := objects.WithFaults(mem, nil, func(op objects.Op) objects.Fault {
						if trouble.Load() {
							return c.plan(op)
						}
						return objects.Fault{}
					})
					var failures, alarms, made atomic.Int64
					begin := func(name string) *node {
						n := s.snapping(name, newPebbles(), store, mode, func(c *engine.Config) {
							c.Events.Snapshot = func(i engine.SnapshotInfo) {
								switch {
								case i.Alarm:
									alarms.Add(1)
									failures.Add(1)
								case i.Err != nil:
									failures.Add(1)
								default:
									made.Add(1)
								}
							}
						})
						n.run()
						return n
					}
					fed := 0
					// more feeds for some steps and returns the commits of inputs, and the longest time from an input to its output.
					more := func(n *node, steps int) (commits float64, longest time.Duration) {
						start := float64(n.commitCount()) - n.metric("snapshots_total", "outcome", "published")
						for range steps {
							since := time.Now()
							s.feed("in", fed, 10, 10)
							fed += 10
							s.await("its output", func() bool { return s.produced("out") > 0 && len(s.read("out")) >= fed })
							longest = max(longest, time.Since(since))
							s.pass(step - time.Since(since))
						}
						return float64(n.commitCount()) - n.metric("snapshots_total", "outcome", "published") - start, longest
					}
					a := begin("a")
					more(a, before/2)
					commits, pace := more(a, before/2)
					a.snapshots(2)
					trouble.Store(true)
					for range bad / before {
						got, longest := more(a, before/2)
						if got < commits || longest > 2*pace+s.tick() {
							t.Errorf("%v commits for %d inputs, were %v; it took %v, took %v", got, 5*before, commits, longest, pace)
						}
					}
					if c.fails && (failures.Load() < 4 || alarms.Load() != failures.Load()-2) {
						t.Errorf("%d failures, %d alarms", failures.Load(), alarms.Load())
					}
					if !c.fails && (failures.Load() > 0 || made.Load() < 4) {
						t.Errorf("%d failures, %d snapshots", failures.Load(), made.Load())
					}
					a.stop()
					b := begin("b")
					more(b, bad/2)
					trouble.Store(false)
					made.Store(0)
					more(b, after)
					if made.Load() < 2 {
						t.Errorf("%d snapshots since it is over", made.Load())
					}
					if _, err := s.newest(mem); err != nil {
						t.Errorf("the newest snapshot: %v", err)
					}
					s.counts("out", fed, 10)
					if got := s.outputs(); !slices.Equal(got, plain) {
						t.Errorf("%d results, %d without snapshots, or others", len(got), len(plain))
					}
					for _, r := range b.restored() {
						t.Logf("restored from %s, %d records", r.Source, r.Records)
					}
				})
			})
		}
	}
}

// tick is how exactly await looks.
func (s *scene) tick() time.Duration { return 100 * time.Millisecond }

// What the object store loses of snapshots the next ones put there again, although the database has not changed it.
func TestBucketForgets(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"/", "/sst/", "/manifest/", "cut"} {
		t.Run("lost="+part, func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				// What is not written for every second is not compacted: the first file stays part of the database.
				a := s.snapping("a", newPebbles(), store, engine.RestoreFull, func(c *engine.Config) { c.StateOptions.LayerAge = time.Hour })
				a.run()
				s.feed("in", 0, 2000, 500)
				s.counts("out", 2000, 500)
				a.snapshots(1)
				if part == "cut" {
					for _, key := range keysOf(t, store, "/sst/") {
						if err := store.Put(t.Context(), key, objects.Bytes([]byte("half"))); err != nil {
							t.Fatal(err)
						}
					}
				} else if err := store.Delete(t.Context(), keysOf(t, store, part)...); err != nil {
					t.Fatal(err)
				}
				for i := range 2 {
					s.feed("in", 2000+i, 1, 500)
					s.pass(11 * time.Second)
				}
				if _, err := s.newest(store); err != nil {
					t.Errorf("the newest snapshot: %v", err)
				}
				if told := a.said("the object store has lost parts of snapshots") > 0; told != (part != "/manifest/") {
					t.Errorf("told: %v", told)
				}
				a.stop()
				b := s.snapping("b", newPebbles(), store, engine.RestoreFull)
				b.run()
				s.feed("in", 2002, 100, 500)
				s.counts("out", 2102, 500)
				if r := b.restored(); len(r) != 1 || r[0].Source != "snapshot" {
					t.Errorf("restored %+v", r)
				}
			})
		})
	}
}

// F17 with snapshots: a changelog that begins behind what the last commit needs is enough for a snapshot that lies in it; with a
// gap between the two the state is incomplete, and one that was deleted or made anew is lost, whatever the bucket holds.
func TestF17Snapshots(t *testing.T) {
	t.Parallel()
	const log = "app-counts-changelog"
	for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
		for _, c := range []struct {
			name string
			do   func(s *scene, at, end int64) error
			want error
		}{
			{"cut at the snapshot", func(s *scene, at, end int64) error { return s.broker.Cluster().DeleteRecords(log, 0, at) }, nil},
			{"cut behind the snapshot", func(s *scene, at, end int64) error { return s.broker.Cluster().DeleteRecords(log, 0, at+1) }, engine.ErrChangelogTruncated},
			{"cut at the end", func(s *scene, at, end int64) error { return s.broker.Cluster().DeleteRecords(log, 0, end-1) }, engine.ErrChangelogTruncated},
			{"deleted", func(s *scene, at, end int64) error { return s.broker.Cluster().DeleteTopic(log) }, engine.ErrChangelogLost},
			{"made anew", func(s *scene, at, end int64) error {
				err := s.broker.Cluster().DeleteTopic(log)
				s.mustCreate(log, 1, map[string]string{"cleanup.policy": "compact"})
				return err
			}, engine.ErrChangelogLost},
		} {
			t.Run(fmt.Sprintf("%s mode=%d", c.name, mode), func(t *testing.T) {
				t.Parallel()
				o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
				simulate(t, o, func(t *testing.T, s *scene) {
					store := objects.NewMem()
					a := s.snapping("a", newPebbles(), store, mode)
					a.run()
					s.feed("in", 0, 1000, 100)
					s.counts("out", 1000, 100)
					a.snapshots(1)
					s.feed("in", 1000, 100, 100)
					s.counts("out", 1100, 100)
					s.caughtUp("in")
					m, err := s.newest(store)
					if err != nil {
						t.Fatal(err)
					}
					a.stop()
					at, ok := m.End("counts")
					end := s.bounds(log)[tp(log, 0)].HighWatermark
					if !ok || at >= end-1 {
						t.Fatalf("the snapshot ends at %d, the changelog at %d", at, end)
					}
					if err := c.do(s, at, end); err != nil {
						t.Fatal(err)
					}
					s.feed("in", 1100, 100, 100)
					b := s.snapping("b", newPebbles(), store, mode)
					b.run()
					if c.want != nil {
						b.refused(c.want, log, "tidemark reset")
						if n := len(s.read("out")); n != 1100 {
							t.Errorf("%d results", n)
						}
						return
					}
					s.counts("out", 1200, 100)
					if r := b.restored(); len(r) != 1 || !strings.HasSuffix(r[0].Source, "snapshot") {
						t.Errorf("restored %+v", r)
					}
				})
			})
		}
	}
}

// A snapshot keeps to the rate of the instance, what is read to learn sums included; records and commits do not wait for it.
func TestSnapshotRate(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		store := objects.NewMem()
		const perSecond = 1000
		var made atomic.Int64 // how long the first one took
		a := s.snapping("a", newPebbles(), store, engine.RestoreFull, func(c *engine.Config) {
			c.Snapshots.Rate = rate.New(perSecond, nil)
			c.Events.Snapshot = func(i engine.SnapshotInfo) { made.CompareAndSwap(0, int64(i.Took)) }
		})
		a.run()
		s.feed("in", 0, 2000, 500)
		s.counts("out", 2000, 500)
		s.await("an upload", func() bool { return len(keysOf(t, store, "")) > 0 })
		s.feed("in", 2000, 100, 500)
		s.counts("out", 2100, 500)
		if made.Load() > 0 {
			t.Error("it is done already")
		}
		a.snapshots(1)
		m, err := s.newest(store)
		if err != nil {
			t.Fatal(err)
		}
		var least int64
		for _, f := range m.Files {
			if f.Data == nil {
				least += 2 * f.Size // read for its sum, and put
			} else {
				least += f.Size
			}
		}
		want, took := time.Duration(least)*time.Second/perSecond, time.Duration(made.Load())
		if took < want-time.Second || took > want+3*time.Second {
			t.Errorf("it took %v, %d bytes take %v", took, least, want)
		}
	})
}

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/store/pebblestore"
	"github.com/tidemark/tidemark/topology"
)

// bucket is an object store as one instance sees it: a dead one reaches nothing.
type bucket struct {
	objects.Store
	n *node
}

var errDead = errors.New("the process is dead")

func (b *bucket) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if b.n.dead() {
		return errDead
	}
	return b.Store.Put(ctx, key, body)
}

func (b *bucket) Delete(ctx context.Context, keys ...string) error {
	if b.n.dead() {
		return errDead
	}
	return b.Store.Delete(ctx, keys...)
}

// snapping prepares an instance with snapshots into an object store, one every ten seconds if there are changes.
func (s *scene) snapping(name string, d *pebbles, store objects.Store, mode engine.RestoreMode, change ...func(*engine.Config)) *node {
	s.t.Helper()
	return s.snappingAs(name, counting(), d, store, mode, change...)
}

// snappingAs is snapping for another app than counting.
func (s *scene) snappingAs(name string, top *topology.Topology, d *pebbles, store objects.Store, mode engine.RestoreMode, change ...func(*engine.Config)) *node {
	s.t.Helper()
	b := &bucket{Store: store}
	n := s.prepare(name, top, d, func(c *engine.Config) {
		c.Snapshots = &engine.Snapshots{Store: b, Interval: 10 * time.Second, Restore: mode, Format: pebblestore.FormatVersion(), Dir: d.tasks()}
		for _, f := range change {
			f(c)
		}
	})
	b.n = n
	return n
}

// snapshots waits for so many published snapshots of an instance.
func (n *node) snapshots(want int) {
	n.s.t.Helper()
	n.s.await(fmt.Sprintf("%d snapshots", want), func() bool { return n.metric("snapshots_total", "outcome", "published") >= float64(want) })
}

// keysOf lists an object store.
func keysOf(t *testing.T, store objects.Store, part string) (keys []string) {
	t.Helper()
	err := store.List(t.Context(), "", func(i objects.Info) error {
		if strings.Contains(i.Key, part) {
			keys = append(keys, i.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// An instance without a disk starts from the snapshot and replays what came after it, both ways of restoring. What it has
// then is what the changelogs say.
func TestRestoreFromSnapshot(t *testing.T) {
	t.Parallel()
	for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
		t.Run(fmt.Sprint("mode=", mode), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				a := s.snapping("a", newPebbles(), store, mode)
				a.run()
				s.feed("in", 0, 1000, 100)
				s.counts("out", 1000, 100)
				a.snapshots(1)
				s.feed("in", 1000, 50, 100)
				s.counts("out", 1050, 100)
				a.stop()
				b := s.snapping("b", newPebbles(), store, mode)
				b.run()
				s.feed("in", 1050, 200, 100)
				s.counts("out", 1250, 100)
				s.caughtUp("in")
				source := map[engine.RestoreMode]string{engine.RestoreFull: "snapshot", engine.RestoreLazy: "lazy snapshot"}[mode]
				for _, r := range b.restored() {
					if r.Source != source || r.Records != 50 {
						t.Errorf("restored %d records from %s", r.Records, r.Source)
					}
				}
				if mode == engine.RestoreLazy {
					s.await("everything is here", func() bool { return b.said("snapshot is here") == 1 })
				}
				// A snapshot of the database that was made from a snapshot, and a third life from that.
				b.snapshots(1)
				b.stop()
				c := s.snapping("c", newPebbles(), store, mode)
				c.run()
				s.feed("in", 1250, 100, 100)
				s.counts("out", 1350, 100)
				for _, r := range c.restored() {
					if r.Source != source {
						t.Errorf("restored from %s", r.Source)
					}
				}
			})
		})
	}
}

// Nothing of a bucket is believed that is not whole: the next older snapshot is taken, and the changelogs when none is left.
func TestSnapshotDamaged(t *testing.T) {
	t.Parallel()
	flip := func(match string) func(objects.Op) objects.Fault {
		return func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpGet && strings.Contains(op.Key, match) {
				return objects.Fault{Damage: objects.Flip(100)}
			}
			return objects.Fault{}
		}
	}
	for _, c := range []struct {
		name   string
		mode   engine.RestoreMode
		source string
		plan   func(manifests []string) func(objects.Op) objects.Fault
	}{
		{"newest manifest", engine.RestoreFull, "snapshot", func(m []string) func(objects.Op) objects.Fault { return flip(m[len(m)-1]) }},
		{"all manifests", engine.RestoreFull, "changelog", func([]string) func(objects.Op) objects.Fault { return flip("/manifest/") }},
		{"all files", engine.RestoreFull, "changelog", func([]string) func(objects.Op) objects.Fault { return flip("/sst/") }},
		{"all files, lazily", engine.RestoreLazy, "changelog", func([]string) func(objects.Op) objects.Fault { return flip("/sst/") }},
		{"everything gone", engine.RestoreLazy, "changelog", func([]string) func(objects.Op) objects.Fault {
			return func(op objects.Op) objects.Fault {
				if op.Kind == objects.OpGet {
					return objects.Fault{Err: objects.ErrNotFound}
				}
				return objects.Fault{}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				a := s.snapping("a", newPebbles(), store, c.mode)
				a.run()
				for i := range 3 {
					s.feed("in", i*500, 500, 100)
					s.counts("out", (i+1)*500, 100)
					a.snapshots(i + 1)
				}
				a.stop()
				b := s.snapping("b", newPebbles(), objects.WithFaults(store, nil, c.plan(keysOf(t, store, "/manifest/"))), c.mode)
				b.run()
				s.feed("in", 1500, 100, 100)
				s.counts("out", 1600, 100)
				if n := b.said("task opens again"); n > 0 {
					t.Errorf("opened again %d times", n)
				}
				restored := b.restored()
				if len(restored) == 0 || restored[len(restored)-1].Source != c.source {
					t.Errorf("restored %+v, want from %s", restored, c.source)
				}
				if b.metric("snapshot_rejected_total") == 0 {
					t.Error("nothing was counted")
				}
			})
		})
	}
}

// A bucket that refuses everything changes no output; the third failure in a row is an alarm, and the first success after
// that ends it.
func TestSnapshotsFail(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		mem := objects.NewMem()
		down := true
		var alarms, failures int
		store := objects.WithFaults(mem, nil, func(objects.Op) objects.Fault {
			if down {
				return objects.Fault{Err: errors.New("503 SlowDown")}
			}
			return objects.Fault{}
		})
		d := newPebbles()
		n := s.prepare("a", counting(), d, func(c *engine.Config) {
			c.Snapshots = &engine.Snapshots{Store: store, Interval: 10 * time.Second, Format: pebblestore.FormatVersion(), Dir: d.tasks()}
			c.Events.Snapshot = func(i engine.SnapshotInfo) {
				if i.Err != nil {
					failures++
				}
				if i.Alarm {
					alarms++
				}
			}
		})
		n.run()
		for i := range 60 {
			s.feed("in", i*10, 10, 10)
			s.counts("out", (i+1)*10, 10)
			s.pass(time.Second)
		}
		down = false
		s.feed("in", 600, 10, 10)
		n.snapshots(1)
		s.counts("out", 610, 10)
		n.stop()
		if failures < 4 || alarms != failures-2 {
			t.Errorf("%d failures, %d alarms", failures, alarms)
		}
	})
}

// A snapshot that has failed is tried again though nothing has changed since, and is published though nothing is read.
func TestSnapshotTriedAgain(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		puts := 0
		store := objects.WithFaults(objects.NewMem(), nil, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpPut {
				if puts++; puts == 1 {
					return objects.Fault{Err: errors.New("connection reset")}
				}
			}
			return objects.Fault{}
		})
		n := s.snapping("a", newPebbles(), store, engine.RestoreFull)
		n.run()
		s.feed("in", 0, 100, 10)
		s.counts("out", 100, 10)
		n.snapshots(1)
		if n.metric("snapshots_total", "outcome", "failed") != 1 {
			t.Error("nothing has failed")
		}
	})
}

// An instance that is stopped while it waits for a bucket that does not answer ends at once; one that is left alone gives the
// snapshot up and replays the changelogs.
func TestSnapshotHangs(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		t.Run(fmt.Sprint("stopped=", stopped), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				a := s.snapping("a", newPebbles(), store, engine.RestoreLazy)
				a.run()
				s.feed("in", 0, 1000, 100)
				s.counts("out", 1000, 100)
				a.snapshots(1)
				a.stop()
				hangs := objects.WithFaults(store, nil, func(op objects.Op) objects.Fault {
					if op.Kind == objects.OpGet && strings.Contains(op.Key, "/sst/") {
						return objects.Fault{Delay: time.Hour}
					}
					return objects.Fault{}
				})
				b := s.snapping("b", newPebbles(), hangs, engine.RestoreLazy)
				b.run()
				if stopped {
					s.pass(10 * time.Second)
					since := time.Now()
					b.stop()
					if took := time.Since(since); took > 5*time.Second {
						t.Errorf("it took %v to stop", took)
					}
					return
				}
				s.feed("in", 1000, 100, 100)
				s.counts("out", 1100, 100)
				if r := b.restored(); len(r) != 1 || r[0].Source != "changelog" {
					t.Errorf("restored %+v", r)
				}
			})
		})
	}
}

// A list of snapshots that a later build has written is carried along, and no snapshot is made that could not be listed.
func TestSnapshotListOfLaterBuild(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const topic = "app-counts-progress"
		newest := func() *changelog.Progress {
			tail, err := s.reader.ReadTail(t.Context(), topic, 0, s.bounds(topic)[tp(topic, 0)].HighWatermark)
			if err != nil {
				t.Fatal(err)
			}
			return tail.Record
		}
		store, d := objects.NewMem(), newPebbles()
		a := s.snapping("a", d, store, engine.RestoreAuto)
		a.run()
		s.feed("in", 0, 100, 10)
		s.counts("out", 100, 10)
		a.snapshots(1)
		a.stop()
		p, later := newest(), []byte{99, 1, 2, 3}
		p.SetSection(changelog.SectionSnapshots, later)
		value, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.send(rec{topic: topic, key: []byte(changelog.ProgressKey), value: value})
		before := len(keysOf(t, store, ""))
		a = s.snapping("a", d, store, engine.RestoreAuto)
		a.run()
		s.feed("in", 100, 100, 10)
		s.counts("out", 200, 10)
		commits := a.commitCount()
		s.pass(time.Minute)
		if n := a.commitCount() - commits; n > 1 {
			t.Errorf("%d commits without input", n)
		}
		a.stop()
		if got := newest().Section(changelog.SectionSnapshots); !bytes.Equal(got, later) {
			t.Errorf("the list is %x, was %x", got, later)
		}
		if n := len(keysOf(t, store, "")); n != before {
			t.Errorf("%d objects, were %d", n, before)
		}
	})
}

// K10 to K14: the process dies in the middle of a snapshot, of its collection or of a restore. The next one has lost
// nothing, and makes snapshots.
func TestSnapshotCrashes(t *testing.T) {
	t.Parallel()
	for _, p := range []engine.Point{engine.K10, engine.K11, engine.K12, engine.K13} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				a := s.snapping("a", newPebbles(), store, engine.RestoreFull)
				nth := 2
				if p == engine.K13 {
					nth = 1
				}
				a.dieAt(p, nth)
				a.run()
				fed := 0
				more := func(n *node) {
					s.feed("in", fed, 100, 100)
					fed += 100
					s.pass(15 * time.Second)
				}
				for i := 0; i < 8 && !a.dead(); i++ {
					more(a)
					if p == engine.K13 && i == 5 {
						s.pass(snapshot.Grace) // nothing younger is deleted
					}
				}
				if !a.dead() {
					t.Fatal("it never came to the point")
				}
				s.pass(dead)
				b := s.snapping("b", a.remains().(*pebbles), store, engine.RestoreFull)
				b.run()
				more(b)
				s.counts("out", fed, 100)
				b.snapshots(1)
				b.stop()
				c := s.snapping("c", newPebbles(), store, engine.RestoreLazy)
				c.run()
				more(c)
				s.counts("out", fed, 100)
				if r := c.restored(); len(r) != 1 || r[0].Source != "lazy snapshot" {
					t.Errorf("restored %+v", r)
				}
			})
		})
	}
	t.Run("K14", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []engine.RestoreMode{engine.RestoreFull, engine.RestoreLazy} {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				a := s.snapping("a", newPebbles(), store, mode)
				a.run()
				s.feed("in", 0, 1000, 100)
				s.counts("out", 1000, 100)
				a.snapshots(1)
				a.stop()
				b := s.snapping("b", newPebbles(), store, mode)
				b.dieAt(engine.K14, 1)
				b.run()
				s.await("its death", b.dead)
				s.pass(dead)
				c := s.snapping("b", b.remains().(*pebbles), store, mode)
				c.run()
				s.feed("in", 1000, 500, 100)
				s.counts("out", 1500, 100)
				c.snapshots(1)
			})
		}
	})
}

// What no retained snapshot names is deleted an hour later, and nothing else: the oldest of the three kept can be restored.
func TestSnapshotsCollected(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		store := objects.NewMem()
		a := s.snapping("a", newPebbles(), store, engine.RestoreFull)
		a.run()
		for i := range 8 {
			s.feed("in", i*300, 300, 300)
			s.counts("out", (i+1)*300, 300)
			a.snapshots(i + 1)
			if i == 5 {
				if n := len(keysOf(t, store, "/manifest/")); n != 6 {
					t.Errorf("%d manifests, 6 were made within the hour", n)
				}
				s.pass(snapshot.Grace)
			}
		}
		s.pass(time.Second)
		a.stop()
		manifests := keysOf(t, store, "/manifest/")
		if len(manifests) != 3 {
			t.Errorf("%d manifests are left", len(manifests))
		}
		for _, m := range manifests[len(manifests)-3:] {
			refs, err := snapshot.Find(t.Context(), store, m)
			if err != nil || len(refs) != 1 {
				t.Fatal(refs, err)
			}
			loaded, err := snapshot.Load(t.Context(), store, refs[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := snapshot.Verify(t.Context(), store, loaded, snapshot.Options{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// An instance that has lost its task without knowing publishes nothing: what it has uploaded no progress record names, whether
// the upload ends before others have taken over or after.
func TestZombieSnapshot(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late=", late), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				store := objects.NewMem()
				gate := make(chan struct{})
				a := s.snapping("a", newPebbles(), store, engine.RestoreFull)
				a.onPoint(func(p engine.Point) {
					if p == engine.K12 {
						<-gate // uploaded, and then the process stands still
					}
				})
				a.run()
				s.feed("in", 0, 500, 100)
				s.counts("out", 500, 100)
				s.await("an upload", func() bool { return len(keysOf(t, store, "/manifest/")) == 1 })
				a.freeze(true)
				if !late {
					close(gate)
				}
				s.pass(dead)
				b := s.snapping("b", newPebbles(), store, engine.RestoreFull)
				b.run()
				s.feed("in", 500, 100, 100)
				s.counts("out", 600, 100)
				a.freeze(false)
				if late {
					close(gate)
				}
				s.pass(5 * time.Second)
				if a.metric("snapshots_total", "outcome", "published") != 0 {
					t.Error("the zombie has published")
				}
				for _, r := range b.restored() {
					if r.Source != "changelog" {
						t.Errorf("restored from %s", r.Source)
					}
				}
				s.counts("out", 600, 100)
			})
		})
	}
}

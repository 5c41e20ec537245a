package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
	"github.com/tidemark/tidemark/topology"
)

// C-REBALANCE-MID: a rebalance comes in the middle of a restore, and the task stays. Progress never goes back.
func TestCRebalanceMid(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const keys = 3000
		s.feed("in", 0, keys, keys)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", keys, keys)
		n.stop()
		n = s.prepare("a", counting(), nil, nil)
		middle, goOn := make(chan struct{}), make(chan struct{})
		n.onPoint(func(p engine.Point) {
			if p == engine.K15 {
				close(middle)
				<-goOn
			}
		})
		n.run()
		<-middle
		b := s.start("b", countingMore(), nil, nil) // waits: the task stays where it is
		s.await("b waits", func() bool { return b.said("waiting without tasks") > 0 })
		close(goOn)
		n.awaitTasks(1)
		n.mu.Lock()
		last := int64(0)
		for _, r := range n.restores {
			if r.Done < last || r.Total < r.Done {
				t.Errorf("progress %d of %d after %d", r.Done, r.Total, last)
			}
			last = r.Done
		}
		opened := n.opened[processor.TaskID{Sub: "counts"}]
		n.mu.Unlock()
		if opened != 1 || len(n.restored()) != 1 {
			t.Errorf("opened %d times, restored %d times", opened, len(n.restored()))
		}
		s.feed("in", keys, keys, keys)
		s.counts("out", 2*keys, keys)
	})
}

// C-ONE-OF-TWO: one of a task's two stores has a position outside of its changelog. The local state is given up
// as a whole (both stores are one database, with one progress) and rebuilt; no position that does not hold is
// ever kept.
func TestCOneOfTwo(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 50, 10)
		n := s.start("a", countingMore(), nil, nil)
		s.counts("out", 50, 10)
		s.caughtUp("in")
		d := n.stop().(*disk)
		s.forge(d, processor.TaskID{Sub: "counts"}, func(p *changelog.Progress) { p.Ends[1].End += 1000 })
		n = s.start("a", countingMore(), d, nil)
		n.awaitTasks(1)
		if r := n.restored(); len(r) != 1 || r[0].Source != "changelog" || n.said("is beyond the end") == 0 {
			t.Errorf("restores %+v", r)
		}
		s.feed("in", 50, 50, 10)
		s.counts("out", 100, 10)
	})
}

// forge changes the progress a database holds.
func (s *scene) forge(d storage, id processor.TaskID, change func(*changelog.Progress)) {
	s.t.Helper()
	db, err := d.open(id)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	blob, err := store.ReadProgress(db)
	if err != nil || blob == nil {
		s.t.Fatal("no progress", err)
	}
	p, err := changelog.DecodeProgress(blob)
	if err != nil {
		s.t.Fatal(err)
	}
	change(p)
	forged, err := p.Append(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	it, err := db.Scan(nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var b store.Batch
	for it.Next() {
		if string(it.Value()) == string(blob) {
			b.Set(it.Key(), forged)
		}
	}
	if err := errors.Join(it.Close(), db.Apply(&b), db.Flush()); err != nil {
		s.t.Fatal(err)
	}
}

// Which local state is used: its age, a position beyond the end, and an earlier life of the app decide.
func TestLocalCandidates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source, why string
		change            func(*changelog.Progress)
		more              bool
	}{
		{"fresh", "local", "", func(*changelog.Progress) {}, true},
		{"old and complete", "local", "", func(p *changelog.Progress) { p.Time -= (100 * 24 * time.Hour).Milliseconds() }, false},
		{"old and behind", "changelog", "old", func(p *changelog.Progress) { p.Time -= (100 * 24 * time.Hour).Milliseconds() }, true},
		{"beyond the end", "changelog", "beyond the end", func(p *changelog.Progress) { p.Ends[0].End += 100000 }, true},
		{"earlier life", "changelog", "earlier life", func(p *changelog.Progress) {
			for i := range p.TopicIDs {
				p.TopicIDs[i].ID[0]++
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 50, 10)
				n := s.start("a", counting(), nil, nil)
				s.counts("out", 50, 10)
				s.caughtUp("in")
				total := 50
				d := n.stop().found()
				if c.more {
					n = s.start("a", counting(), nil, nil) // on another disk: ours falls behind
					s.feed("in", 50, 50, 10)
					s.counts("out", 100, 10)
					s.caughtUp("in")
					n.stop()
					total = 100
				}
				s.forge(d, processor.TaskID{Sub: "counts"}, c.change)
				n = s.start("a", counting(), d, nil)
				n.awaitTasks(1)
				if r := n.restored(); len(r) != 1 || r[0].Source != c.source || c.why != "" && n.said(c.why) == 0 {
					t.Errorf("restores %+v", r)
				}
				s.feed("in", total, 50, 10)
				s.counts("out", total+50, 10)
			})
		})
	}
}

// C-LATE-REGISTER: the database of one task is locked for a second; the other task does not wait for it.
func TestCLateRegister(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 40, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 40, 10)
		d := n.stop()
		locked := processor.TaskID{Sub: "counts", Partition: 1}
		db, err := d.open(locked)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		n = s.start("a", counting(), d, nil)
		n.awaitTasks(1)
		if took := time.Since(at); took > time.Second {
			t.Errorf("the first task ran after %v", took)
		}
		s.pass(time.Second)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		n.awaitTasks(2)
		s.feed("in", 40, 40, 10)
		s.counts("out", 80, 10)
	})
}

// C-MARKER-END: the tail of a changelog is an aborted transaction, or nothing but markers; the restore ends.
func TestCMarkerEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		end  kgo.TransactionEndTry
	}{{"aborted records", 5, kgo.TryAbort}, {"large abort", 500, kgo.TryAbort}} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 50, 10)
				n := s.start("a", counting(), nil, nil)
				s.counts("out", 50, 10)
				s.caughtUp("in")
				n.stop()
				s.transact("app-counts-changelog", c.end, c.n)
				s.broker.Cluster().Compact()
				n = s.start("a", counting(), nil, nil)
				n.awaitTasks(1)
				if r := n.restored(); len(r) != 1 || r[0].Done != r[0].Total {
					t.Errorf("restores %+v", r)
				}
				s.feed("in", 50, 50, 10)
				s.counts("out", 100, 10)
			})
		})
	}
}

// D-DISK-FULL: the disk is full when the committed layer is written. The task goes on from memory and says so,
// nothing that is committed is lost, and with space again the state reaches the disk.
func TestDDiskFull(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		var full atomic.Bool
		d := newPebbles()
		d.fs = d.base.Inject(func(op pebblestore.Op) error {
			if full.Load() && op.Write {
				return syscall.ENOSPC
			}
			return nil
		})
		s.feed("in", 0, 50, 10)
		n := s.start("a", counting(), d, nil)
		s.counts("out", 50, 10)
		next := 50
		full.Store(true)
		for end := time.Now().Add(80 * time.Second); time.Now().Before(end); s.pass(time.Second) {
			s.feed("in", next, 10, 10)
			next += 10
		}
		n.mustLive()
		if n.said("store cannot be written") == 0 {
			t.Error("the disk was never full")
		}
		s.counts("out", next, 10)
		full.Store(false)
		s.await("the layer on disk", func() bool { return n.said("store written again") > 0 })
		n.stop()
		n = s.start("a", counting(), d, nil)
		n.awaitTasks(1)
		if r := n.restored(); len(r) != 1 || r[0].Source != "local" || r[0].Records != 0 {
			t.Errorf("restores %+v", r)
		}
		s.feed("in", next, 50, 10)
		s.counts("out", next+50, 10)
	})
}

// D-DISK-FULL with kill -9 while it is full: the committed data is in the changelog.
func TestDDiskFullCrash(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		var full atomic.Bool
		d := newPebbles()
		d.fs = d.base.Inject(func(op pebblestore.Op) error {
			if full.Load() && op.Write {
				return syscall.ENOSPC
			}
			return nil
		})
		s.feed("in", 0, 50, 10)
		n := s.start("a", counting(), d, func(c *engine.Config) { c.StateOptions.LayerRecords = 1 })
		s.counts("out", 50, 10)
		full.Store(true)
		s.feed("in", 50, 50, 10)
		s.counts("out", 100, 10)
		n.crash()
		s.start("a", counting(), n.remains(), nil)
		s.feed("in", 100, 50, 10)
		s.counts("out", 150, 10)
	})
}

// D-DAMAGED: bytes of a table file, or of the manifest, are flipped. The database is set aside, counted, and
// restored; one restart is enough.
func TestDDamaged(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{".sst", "MANIFEST"} {
		t.Run(kind, func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				d := newPebbles()
				id := processor.TaskID{Sub: "counts"}
				s.feed("in", 0, 500, 100)
				n := s.start("a", counting(), d, nil)
				s.counts("out", 500, 100)
				s.caughtUp("in")
				n.stop()
				names, err := d.fs.List(d.dir(id))
				if err != nil {
					t.Fatal(err)
				}
				damaged := 0
				for _, name := range names {
					if !strings.Contains(name, kind) {
						continue
					}
					path := filepath.Join(d.dir(id), name)
					b, err := d.fs.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					for i := range b {
						b[i] ^= 0x55
					}
					if err := d.fs.WriteFile(path, b); err != nil {
						t.Fatal(err)
					}
					damaged++
				}
				if damaged == 0 {
					t.Fatalf("no %s among %q", kind, names)
				}
				n = s.start("a", counting(), d, nil)
				s.feed("in", 500, 100, 100)
				s.counts("out", 600, 100)
				if got := n.metric("store_corruptions_total"); got != 1 {
					t.Errorf("store_corruptions_total is %v", got)
				}
				if r := n.restored(); len(r) != 1 || r[0].Source != "changelog" {
					t.Errorf("restores %+v", r)
				}
			})
		})
	}
}

// An input that is fetched while the state is being restored waits for it, in order.
func TestBInputDuringLoad(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := func() *topology.Topology { return counting() }
		s.feed("in", 0, 1000, 1000)
		n := s.start("a", top(), nil, nil)
		s.counts("out", 1000, 1000)
		n.stop()
		n = s.prepare("a", top(), nil, nil)
		n.onPoint(func(p engine.Point) {
			if p == engine.K15 {
				stand(20 * time.Second) // far beyond the session
			}
		})
		n.run()
		s.feed("in", 1000, 1000, 1000)
		s.counts("out", 2000, 1000)
		if g := s.broker.Cluster().GroupInfo("app"); g.Epoch != 2 && g.Epoch != 3 {
			t.Errorf("generation %d: the restore cost the membership", g.Epoch)
		}
		if got := len(n.restored()); got != 1 {
			t.Errorf("%d restores", got)
		}
	})
}

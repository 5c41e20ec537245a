package engine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// keyed is an app with a repartition topic: in is counted by the last digit of its values.
func keyed() *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").
		KeyBy("by-digit", func(v string) string { return "k" + v[len(v)-1:] }).
		Count("counts", topology.EveryUpdate()).To("out")
	return top
}

const repartition = "app-by-digit-repartition"

// R-COUNT-MISMATCH: a changelog with another partition count than its source is refused with names and counts,
// before anything is read.
func TestRCountMismatch(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 8, "out": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate("app-counts-changelog", 4, map[string]string{"cleanup.policy": "compact"})
		s.feed("in", 0, 10, 10)
		n := s.start("a", counting(), nil, nil)
		n.refused(engine.ErrPartitionMismatch, "app-counts-changelog", "inputs are in:", "4", "8")
		if n.e.Processed() != 0 || s.broker.Cluster().GroupInfo("app") != nil {
			t.Error("it has joined or read")
		}
	})
}

// R-CREATE-ORDER: the changelog behind a repartition topic gets the count of the source, not the broker's
// default.
func TestRCreateOrder(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{DefaultPartitions: 1, Topics: map[string]int{"in": 5, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		n := s.start("a", keyed(), nil, nil)
		n.awaitTasks(10)
		for _, topic := range []string{repartition, "app-counts-changelog"} {
			if got := len(s.broker.Cluster().PartitionInfos(topic)); got != 5 {
				t.Errorf("%s has %d partitions", topic, got)
			}
		}
		s.counts("out", 100, 10)
	})
}

// R-PURGE-COMMITTED: while a commit hangs, records are consumed that are not committed. The purger leaves them,
// and after a crash they are processed.
func TestRPurgeCommitted(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		const n = 1600
		a := s.prepare("a", keyed(), nil, func(c *engine.Config) {
			c.TransactionTimeout = time.Minute
			c.PurgeInterval = 100 * time.Millisecond
		})
		var hang atomic.Bool
		a.onPoint(func(p engine.Point) {
			if p == engine.K4 && hang.Load() {
				stand(2 * time.Second) // on the committer's goroutine
			}
		})
		a.run()
		start := func() int64 { return s.broker.Cluster().PartitionInfo(repartition, 0).LogStartOffset }
		offset := func() int64 { return s.broker.Cluster().GroupInfo("app").Commits[repartition][0].Offset }
		deleted := func() {
			if at, of := start(), offset(); at > of {
				t.Fatalf("deleted to %d, committed to %d", at, of)
			}
		}
		for i := 0; i < n; i += 20 {
			hang.Store(i >= n/2)
			s.feed("in", i, 20, 10)
			s.pass(150 * time.Millisecond)
			if i > 0 {
				deleted()
			}
		}
		before := start()
		if before == 0 {
			t.Error("nothing was ever deleted")
		}
		s.await("records consumed beyond the commit", func() bool { deleted(); return s.bounds(repartition)[tp(repartition, 0)].HighWatermark > offset()+20 })
		a.crash()
		s.pass(dead)
		s.start("b", keyed(), nil, nil)
		s.counts("out", n, 10)
	})
}

// A wrong cleanup policy would lose state or never forget: it is refused with the command that repairs it.
func TestWrongCleanupPolicy(t *testing.T) {
	t.Parallel()
	for topic, policy := range map[string]string{
		"app-counts-changelog": "delete", "app-by-digit-progress": "delete", "app-control": "delete", repartition: "compact",
		"app-in-progress": "compact,delete",
	} {
		t.Run(topic, func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				s.mustCreate(topic, 1, map[string]string{"cleanup.policy": policy})
				n := s.start("a", keyed(), nil, nil)
				n.refused(engine.ErrTopicConfig, topic, "cleanup.policy", "kafka-configs.sh")
			})
		})
	}
}

// Two apps whose topics could have one name are kept apart at the start.
func TestTopicClash(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		named := func(store string) *topology.Topology {
			top := topology.New("app")
			top.Stream[string, string]("in").Count(store).To("out")
			return top
		}
		first := s.start("a", named("c"), nil, func(c *engine.Config) { c.App = "app-b" })
		first.awaitTasks(1)
		n := s.start("a", named("b-c"), nil, nil)
		s.await("the end", n.ended)
		n.judged = true
		if n.err == nil || !contains(n.err.Error(), "app-b-c-changelog", "app-b") {
			t.Fatalf("ended: %v", n.err)
		}
	})
}

// T-TXN-ID: two apps with equal instance ids and worker numbers on one cluster do not fence each other.
func TestTTxnId(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 1, "copy": 1}}, func(t *testing.T, s *scene) {
		a := s.start("x", counting(), nil, nil)
		other := topology.New("other")
		other.Stream[string, string]("in").To("copy")
		b := s.start("x", other, nil, func(c *engine.Config) { c.App = "other" })
		for i := range 20 {
			s.feed("in", 10*i, 10, 5)
			s.pass(60 * time.Millisecond)
		}
		s.counts("out", 200, 5)
		s.copies("copy", 200)
		for _, n := range []*node{a, b} {
			if n.metric("transactions_total", "outcome", "committed") < 5 || n.metric("transaction_aborts_total") != 0 {
				t.Errorf("%s: transactions were aborted, or there were none", n.client)
			}
		}
	})
}

// F16, T-RECREATED: whatever happens to the input's identity, the app ends by name and commits nothing to
// the new one.
func TestF16Input(t *testing.T) {
	t.Parallel()
	remove := func(s *scene) {
		if err := s.broker.Cluster().DeleteTopic("in"); err != nil {
			s.t.Fatal(err)
		}
	}
	recreate := func(s *scene) {
		remove(s)
		s.mustCreate("in", 2, nil)
		s.connect()
		s.feed("in", 0, 5, 5)
	}
	grow := func(s *scene) {
		parts := s.broker.Cluster().PartitionInfos("in")
		s.grow("in", len(parts)+2)
	}
	for _, c := range []struct {
		name   string
		change func(s *scene)
		want   error
		words  []string
	}{
		{"deleted", remove, engine.ErrTopicMissing, []string{"in"}},
		{"recreated", recreate, engine.ErrTopicRecreated, []string{"in", "id", "tidemark reset"}},
		{"grown", grow, engine.ErrPartitionMismatch, []string{"in", "2", "4"}},
	} {
		for _, stopped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stopped=%v", c.name, stopped), func(t *testing.T) {
				simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
					s.feed("in", 0, 100, 10)
					n := s.start("a", counting(), nil, nil)
					s.counts("out", 100, 10)
					s.caughtUp("in")
					if stopped {
						d := n.stop()
						c.change(s)
						n = s.start("a", counting(), d, nil)
					} else {
						c.change(s)
					}
					n.refused(c.want, c.words...)
					if c.name == "grown" {
						return
					}
					if g := s.broker.Cluster().GroupInfo("app"); g != nil && len(g.Commits["in"]) != 0 {
						t.Errorf("committed to the new topic: %v", g.Commits["in"])
					}
					if got := len(s.read("out")); got != 100 {
						t.Errorf("%d results of 100", got)
					}
				})
			})
		}
	}
}

// T-RECREATED, second half: after a reset the records of the new topic are processed from its start.
func TestTRecreated(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		n := s.start("a", counting(), nil, nil)
		s.counts("out", 100, 10)
		d := n.stop()
		if err := s.broker.Cluster().DeleteTopic("in"); err != nil {
			t.Fatal(err)
		}
		s.mustCreate("in", 1, nil)
		s.connect()
		s.feed("in", 0, 5, 5)
		n = s.start("a", counting(), d, nil)
		n.refused(engine.ErrTopicRecreated, "in")
		for _, topic := range []string{"app-counts-changelog", "app-counts-progress", "app-control", "out"} {
			if err := s.broker.Cluster().DeleteTopic(topic); err != nil {
				t.Fatal(err)
			}
		}
		s.mustCreate("out", 1, nil)
		s.start("a", counting(), d, nil) // with the disk of the earlier life
		s.counts("out", 5, 5)
	})
}

// F17: a changelog that was deleted, or recreated, is lost, whether the local state is there or not, and also
// while the app runs.
func TestF17ChangelogLost(t *testing.T) {
	t.Parallel()
	const log = "app-counts-changelog"
	for _, recreated := range []bool{false, true} {
		for _, how := range []string{"running", "disk kept", "disk lost"} {
			t.Run(fmt.Sprintf("recreated=%v %s", recreated, how), func(t *testing.T) {
				simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
					s.feed("in", 0, 100, 10)
					n := s.start("a", counting(), nil, nil)
					s.counts("out", 100, 10)
					var d storage
					if how != "running" {
						d = n.stop()
					}
					if err := s.broker.Cluster().DeleteTopic(log); err != nil {
						t.Fatal(err)
					}
					if recreated {
						s.mustCreate(log, 1, map[string]string{"cleanup.policy": "compact"})
					}
					if how == "disk lost" {
						d = nil
					}
					if how != "running" {
						s.feed("in", 100, 10, 10)
						n = s.start("a", counting(), d, nil)
					}
					n.refused(engine.ErrChangelogLost, log, "tidemark reset")
					if got := len(s.read("out")); got != 100 {
						t.Errorf("%d results", got)
					}
					// The next start does not take the topic made meanwhile for the real one.
					n = s.start("a", counting(), d, nil)
					n.refused(engine.ErrChangelogLost, log)
				})
			})
		}
	}
}

// F17: a changelog whose beginning was deleted. Local state that lies behind it is enough; without it the state
// is incomplete, and that ends Run.
func TestF17ChangelogTruncated(t *testing.T) {
	t.Parallel()
	const log = "app-counts-changelog"
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("disk kept=%v", kept), func(t *testing.T) {
			// The in-process broker by its own name is allowed to move the start of a log when it compacts.
			o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
			simulate(t, o, func(t *testing.T, s *scene) {
				s.feed("in", 0, 100, 10)
				n := s.start("a", counting(), nil, nil)
				s.counts("out", 100, 10)
				s.caughtUp("in")
				d := n.stop()
				end := s.bounds(log)[tp(log, 0)].HighWatermark
				if err := s.broker.Cluster().DeleteRecords(log, 0, end-2); err != nil {
					t.Fatal(err)
				}
				s.feed("in", 100, 10, 10)
				if !kept {
					n = s.start("a", counting(), nil, nil)
					n.refused(engine.ErrChangelogTruncated, log, "tidemark reset")
					return
				}
				s.start("a", counting(), d, nil)
				s.counts("out", 110, 10)
			})
		})
	}
	t.Run("disk behind", func(t *testing.T) {
		o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{kfake.ClusterID("another")}}
		simulate(t, o, func(t *testing.T, s *scene) {
			s.feed("in", 0, 100, 10)
			n := s.start("a", counting(), nil, nil)
			s.counts("out", 100, 10)
			d := n.stop().found()
			s.feed("in", 100, 100, 10)
			n = s.start("a", counting(), n.disk, nil)
			s.counts("out", 200, 10)
			n.stop()
			end := s.bounds(log)[tp(log, 0)].HighWatermark
			if err := s.broker.Cluster().DeleteRecords(log, 0, end-2); err != nil {
				t.Fatal(err)
			}
			n = s.start("a", counting(), d, nil)
			n.refused(engine.ErrChangelogTruncated, log)
		})
	})
}

// A missing right on the broker ends Run with its name, at the start or later; every right counts.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	for i, c := range rights {
		if c.words == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) { testRights(t, i) })
	}
	t.Run("all", func(t *testing.T) { testRights(t, -1) })
}

func testRights(t *testing.T, without int) {
	o := embedded.Options{Topics: map[string]int{"in": 1, "out": 1}, Extra: []kfake.Opt{
		kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root"),
		kfake.User("PLAIN", "user", "user", grants(without)...),
	}}
	simulateAs(t, o, plain("root"), func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		n := s.start("a", keyed(), nil, func(c *engine.Config) { c.Client = append(c.Client, plain("user")...) })
		if without < 0 {
			s.counts("out", 100, 10)
			s.await("a purge", func() bool { return s.broker.Cluster().PartitionInfo(repartition, 0).LogStartOffset > 0 })
			n.stop()
			n = s.start("a", keyed(), nil, func(c *engine.Config) { c.Client = append(c.Client, plain("user")...) })
			n.awaitTasks(2)
			if w := n.said("AUTHORIZATION_FAILED"); w != 0 {
				t.Errorf("%d messages about rights", w)
			}
			return
		}
		n.refused(engine.ErrNotAuthorized, rights[without].words...)
		if errors.Is(n.err, kerr.UnknownServerError) {
			t.Error(n.err)
		}
	})
}

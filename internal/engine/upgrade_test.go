package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// topics returns what every topic of the cluster holds: which one it is, and where its logs begin and end.
func (s *scene) topics() map[string]string {
	s.t.Helper()
	list, err := kadm.NewClient(s.cl).ListTopics(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	out := make(map[string]string)
	for name := range list {
		text := fmt.Sprintf("%x", s.broker.Cluster().TopicInfo(name).TopicID)
		for _, p := range s.broker.Cluster().PartitionInfos(name) {
			text += fmt.Sprintf(" %d-%d", p.LogStartOffset, p.HighWatermark)
		}
		out[name] = text
	}
	return out
}

// reducing has counts of another type, and a repartition topic that counting does not have.
func reducing() *topology.Topology {
	top := topology.New("app")
	in := top.Stream[string, string]("in")
	in.Reduce("counts", func(x, y string) string { return x + y }).To("out")
	in.KeyBy("by", func(v string) string { return v }).Count("values")
	return top
}

// F19: a topology that would mistake the state joins, gets no tasks, says why, and changes no byte of any topic. The one in
// force goes on. When it has gone, the other one is refused with every difference, having changed nothing still, and one
// that fits takes over.
func TestF19Upgrade(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 100, 10)
				a := s.start("a", counting(), nil, nil)
				s.counts("out", 100, 10)
				s.caughtUp("in")
				before := s.topics()
				b := s.start("b", reducing(), nil, nil)
				s.await("b waits", func() bool { return b.said("waiting without tasks") > 0 })
				s.pass(dead)
				if d := cmp.Diff(before, s.topics()); d != "" {
					t.Errorf("topics before b started, and now:\n%s", d)
				}
				if n := b.said("incompatible with the topology in force"); n != 1 || b.said("value schema") != 1 {
					t.Errorf("b said %d times why it waits", n)
				}
				s.feed("in", 100, 100, 10)
				s.counts("out", 200, 10)
				s.caughtUp("in")
				before = s.topics()
				if dies {
					a.crash()
				} else {
					a.stop()
				}
				b.refused(engine.ErrIncompatible, "\n  operator counts: value schema: was int64, now string; declare StateVersion(1)")
				ue, ok := errors.AsType[*engine.UpgradeError](b.err)
				if !ok || len(ue.Differences) != 1 || ue.Differences[0].Rule != topology.RuleValue || ue.Differences[0].Store != "counts" {
					t.Errorf("%#v", b.err)
				}
				if d := cmp.Diff(before, s.topics()); d != "" {
					t.Errorf("topics before b was refused, and now:\n%s", d)
				}
				c := s.start("c", countingMore(), nil, nil)
				c.awaitTasks(2)
				s.feed("in", 200, 100, 10)
				s.counts("out", 300, 10)
			})
		})
	}
}

// A topology that fits takes over although one that does not waits as well, whichever of them leads the group.
func TestUpgradeBesideRefused(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"refused", "fitting"} {
		t.Run(first+" first", func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				s.feed("in", 0, 100, 10)
				a := s.start("a", counting(), nil, nil)
				s.counts("out", 100, 10)
				var nodes []*node
				for range 2 {
					top := countingMore()
					if first == "refused" == (len(nodes) == 0) {
						top = reducing()
					}
					n := s.start(fmt.Sprintf("n%d", len(nodes)), top, nil, nil)
					s.await("it waits", func() bool { return n.said("waiting without tasks") > 0 })
					nodes = append(nodes, n)
				}
				a.stop()
				s.feed("in", 100, 100, 10)
				s.counts("out", 200, 10)
				for _, n := range nodes {
					n.judged = true // the refused one has ended if it led
				}
			})
		})
	}
}

// An operator whose state is not to be lost is missed, until its id is allowed to. Its id is not free then: what comes
// back under it must be able to read what is still there.
func TestUpgradeMissingOperator(t *testing.T) {
	t.Parallel()
	allow := func(c *engine.Config) { c.AllowNonRestored = []string{"last"} }
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		a := s.start("a", countingMore(), nil, nil)
		s.counts("out", 100, 10)
		d := a.stop()
		s.start("a", counting(), d, nil).refused(engine.ErrIncompatible, "operator last: operator with state is missing", "AllowNonRestored")
		a = s.start("a", counting(), d, allow)
		s.feed("in", 100, 100, 10)
		s.counts("out", 200, 10)
		d = a.stop()
		other := func() *topology.Topology {
			top := topology.New("app")
			in := top.Stream[string, string]("in")
			in.Count("counts", topology.EveryUpdate()).To("out")
			in.Aggregate("last", topology.Fold(func(n int64, _ string) int64 { return n }))
			return top
		}
		s.start("a", other(), d, nil).refused(engine.ErrIncompatible, "operator last: value schema: was string, now int64")
		// It is not missed again by who adds something else.
		more := func() *topology.Topology {
			top := counting()
			top.Stream[string, string]("in").Reduce("first", func(v, _ string) string { return v })
			return top
		}
		s.start("a", more(), d, nil)
		s.feed("in", 200, 100, 10)
		s.counts("out", 300, 10)
	})
}

// A topic whose commits are another sub-topology's cannot be read by one that goes on with its own.
func TestUpgradeMovedTopic(t *testing.T) {
	t.Parallel()
	shuffled := func() *topology.Topology {
		top := topology.New("app")
		top.Stream[string, string]("in").KeyBy("by", func(v string) string { return v[:1] }).Count("counts", topology.EveryUpdate()).To("out")
		return top
	}
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 10, 10)
		a := s.start("a", shuffled(), nil, nil)
		s.await("counts", func() bool { return len(s.read("out")) == 10 })
		d := a.stop()
		s.start("a", counting(), d, func(c *engine.Config) { c.AllowNonRestored = []string{"by"} }).
			refused(engine.ErrIncompatible, "topic in read by sub-topology in, now read by sub-topology by")
	})
}

// What a build without shapes has put in force is compared by its stores, and its shape is recorded by the first leader
// that knows shapes.
func TestUpgradeFromBuildWithoutShapes(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 100, 10)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 100, 10)
		d := a.stop()
		last := func() (value []byte) {
			for _, r := range s.read("app-control") {
				if string(r.key) == "shape/counts" {
					value = r.value
				}
			}
			return value
		}
		shape := last()
		s.send(rec{topic: "app-control", key: []byte("shape/counts")}, rec{topic: "app-control", key: []byte("format/userdata")})
		if shape == nil || last() != nil {
			t.Fatal("no shape to remove")
		}
		topics := s.topics()
		s.start("a", reducing(), d, nil).refused(engine.ErrIncompatible, "counts: value schema: was int64, now string")
		if d := cmp.Diff(topics, s.topics()); d != "" {
			t.Errorf("topics before it was refused, and now:\n%s", d)
		}
		a = s.start("a", counting(), d, nil)
		a.awaitTasks(2)
		if !bytes.Equal(last(), shape) {
			t.Errorf("the shape is %q, was %q", last(), shape)
		}
		before := s.produced("app-control")
		a.stop()
		s.start("a", counting(), d, nil).awaitTasks(2)
		if n := s.produced("app-control"); n != before {
			t.Errorf("a restart wrote %d control records", n-before)
		}
	})
}

// U-FORMAT: what a newer build has recorded is refused with both versions named.
func TestUFormatControl(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.feed("in", 0, 10, 5)
		a := s.start("a", counting(), nil, nil)
		s.counts("out", 10, 5)
		d := a.stop()
		sealed := func(b []byte) []byte {
			return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		}
		newer := changelog.ShapeRecordOf(changelog.ShapeRecord{Operator: "counts", Fingerprint: "f", Shape: sealed([]byte{topology.ShapeVersion + 1, 'x'})})
		s.send(rec{topic: "app-control", key: []byte(newer.Key), value: newer.Value})
		s.start("a", countingMore(), d, nil).refused(engine.ErrIncompatible, "operator counts: written by a newer version: was shape version 2, now shape versions up to 1")
		s.send(rec{topic: "app-control", key: []byte("shape/counts")}, rec{topic: "app-control", key: []byte("state"), value: sealed([]byte{changelog.ControlVersion + 1})})
		b := s.start("a", counting(), d, nil)
		<-b.done
		b.judged = true
		if ve, ok := errors.AsType[*changelog.VersionError](b.err); !ok || ve.Have != 2 || !strings.Contains(b.err.Error(), "2") || !strings.Contains(b.err.Error(), "1") {
			t.Errorf("%v", b.err)
		}
	})
}

// tally is what counts become in later versions.
type tally struct{ N int64 }

// tallying is counting with values of a state version: 1 has texts, 2 has tallies.
func tallying(version int) *topology.Topology {
	top := topology.New("app")
	in := top.Stream[string, string]("in")
	fromCount := topology.Migrate(0, nil, func(n int64) (string, error) { return strings.Repeat("x", int(n)), nil })
	switch version {
	case 0:
		in.Count("counts").To("out")
	case 1:
		in.Aggregate("counts", topology.Fold(func(s string, _ string) string { return s + "x" }), topology.StateVersion(1), fromCount).
			Map(func(s string) int64 { return int64(len(s)) }).To("out")
	case 2:
		in.Aggregate("counts", topology.Fold(func(n tally, _ string) tally { return tally{n.N + 1} }), topology.StateVersion(2), fromCount,
			topology.Migrate(1, codec.String(), func(s string) (tally, error) { return tally{int64(len(s))}, nil })).
			Map(func(n tally) int64 { return n.N }).To("out")
	}
	return top
}

// A store that version 0 has written is read by version 2 through two migrations, in whatever mixture of versions its
// rows are, from the disk or from the changelog; rows that change are written in the present version. An older build is
// refused by name.
func TestMigrations(t *testing.T) {
	t.Parallel()
	for _, path := range [][]int{{0, 2}, {0, 1, 2}, {0, 1, 1, 2, 2}} {
		for _, keeps := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v disk=%v", path, keeps), func(t *testing.T) {
				simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
					var d storage
					want := map[string]int64{}
					for life, version := range path {
						a := s.start("a", tallying(version), d, nil)
						// Each life leaves some keys alone: their rows stay as they are.
						var recs []rec
						for k := range 6 - life {
							key := fmt.Sprintf("k%d", k)
							want[key]++
							recs = append(recs, rec{topic: "in", partition: int32(k % 2), key: []byte(key), value: []byte("v")})
						}
						a.awaitTasks(2)
						s.send(recs...)
						s.caughtUp("in")
						d = a.stop()
						if !keeps {
							d = nil
						}
					}
					// The last life touches all keys again, so that it has read all versions.
					a := s.start("a", tallying(2), d, nil)
					a.awaitTasks(2)
					for k := range 6 {
						key := fmt.Sprintf("k%d", k)
						want[key]++
						s.send(rec{topic: "in", partition: int32(k % 2), key: []byte(key), value: []byte("v")})
					}
					s.caughtUp("in")
					got := map[string]int64{}
					for _, r := range s.read("out") {
						got[string(r.key)] = int64(binary.BigEndian.Uint64(r.value))
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Error(diff)
					}
					versions := map[byte]bool{}
					for _, r := range s.read("app-counts-changelog") {
						if len(r.value) == 8 && r.value[0] == 0 {
							versions[0] = true
						} else if r.value[0] == 0xff {
							versions[r.value[1]] = true
						}
					}
					for _, v := range path {
						if !versions[byte(v)] {
							t.Errorf("no row of version %d in the changelog", v)
						}
					}
					d = a.stop()
					s.start("a", tallying(1), d, nil).refused(engine.ErrIncompatible, "counts: written by a newer version: was version 2, json:{N:int}, now version 1, string", "state version 2")
					s.start("a", tallying(0), d, nil).refused(engine.ErrIncompatible, "counts: written by a newer version", "state version 2")
				})
			})
		}
	}
}

// CheckUpgrade says what a start would say, and leaves no trace.
func TestCheckUpgrade(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		check := func(top *topology.Topology) (rules []string) {
			t.Helper()
			plan, err := top.Build()
			if err != nil {
				t.Fatal(err)
			}
			c := engine.CheckConfig{App: "app", Client: s.client}
			tasks, err := engine.CountTasks(t.Context(), plan, c)
			if err != nil {
				t.Fatal(err)
			}
			list, err := engine.CheckUpgrade(t.Context(), plan.Shape().WithTasks(tasks), c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				rules = append(rules, d.Operator+": "+d.Rule)
			}
			return rules
		}
		if got := check(counting()); got != nil {
			t.Errorf("of an app that has never run: %q", got)
		}
		if got := s.topics(); len(got) != 2 {
			t.Errorf("topics %v", got)
		}
		s.start("a", counting(), nil, nil).awaitTasks(2)
		before := s.topics()
		for _, tt := range []struct {
			top  *topology.Topology
			want []string
		}{
			{counting(), nil},
			{countingMore(), nil},
			{reducing(), []string{"counts: value schema"}},
			{copying(), []string{"counts: operator with state is missing"}},
		} {
			if got := check(tt.top); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		}
		if d := cmp.Diff(before, s.topics()); d != "" {
			t.Error(d)
		}
		s.grow("in", 4)
		s.await("the topic has grown", func() bool { return slices.Equal(check(counting()), []string{"counts: number of tasks"}) })
		s.nodes[0].judged = true // an input that grows ends it
		s.pass(time.Second)
	})
}

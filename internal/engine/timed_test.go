package engine_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// What the tests of event time share: apps with windows, and what can be read of their panes.

// tens counts the records of every key in windows of ten seconds.
func tens(opts ...watermark.Option) *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Timestamps(nil, opts...).
		Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
	return top
}

// shuffled is tens behind a repartition by the value: every partition of in feeds every task that counts.
func shuffled(opts ...watermark.Option) *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Timestamps(nil, opts...).
		KeyBy("by-value", func(v string) string { return v }).
		Window(window.Tumbling(10 * time.Second)).Count("counts").To("out")
	return top
}

// combined is shuffled with records that are combined before the repartition: they are sent by the flush.
func combined(opts ...watermark.Option) *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Timestamps(nil, opts...).
		KeyBy("by-value", func(v string) string { return v }).
		Window(window.Tumbling(10*time.Second)).Count("counts", topology.PreAggregate()).To("out")
	return top
}

// at is a record of one partition with a key, which is its value as well, and a time in seconds.
func at(partition int32, key string, seconds float64) rec {
	return rec{topic: "in", partition: partition, key: []byte(key), value: []byte(key), ms: int64(seconds * 1000)}
}

// pane is a result as it was read.
type pane struct {
	key    string
	bounds window.Bounds
	pane   window.Pane
	n      int64
}

// String is "<key>[<start>,<end>)=<n>" in seconds, with the timing and the index.
func (p pane) String() string {
	s := fmt.Sprintf("%s[%d,%d)=%d", p.key, p.bounds.Start/1000, p.bounds.End/1000, p.n)
	if p.pane.Timing != window.TimingOnTime || p.pane.Index != 0 {
		s += fmt.Sprintf(" %v#%d", p.pane.Timing, p.pane.Index)
	}
	return s
}

// panes returns the panes a topic holds, sorted by their text.
func (s *scene) panes(topic string) []pane {
	s.t.Helper()
	var out []pane
	for _, r := range s.read(topic) {
		p := pane{key: string(r.key[:len(r.key)-8]), n: int64(binary.BigEndian.Uint64(r.value))}
		if err := window.ParsePaneHeader(&p.pane, []byte(r.header(window.PaneHeader))); err != nil {
			s.t.Fatal(err)
		}
		var err error
		if p.bounds, err = window.ParseBoundsHeader([]byte(r.header(window.BoundsHeader))); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b pane) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// saw waits until a topic holds so many panes as named, and checks that it is exactly those.
func (s *scene) saw(topic string, want ...string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d panes in %s", len(want), topic), func() bool { return len(s.read(topic)) >= len(want) })
	s.shows(topic, want...)
}

// shows checks that a topic holds exactly the named panes.
func (s *scene) shows(topic string, want ...string) {
	s.t.Helper()
	var got []string
	for _, p := range s.panes(topic) {
		got = append(got, p.String())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("%s holds %v\nwant %v", topic, got, want)
	}
}

// mark returns what the instance says of an operator in the task of one partition.
func (n *node) mark(operator string, partition int32) (engine.Watermark, bool) {
	for _, w := range n.e.Watermarks() {
		if w.Operator == operator && w.Task.Partition == partition {
			return w, true
		}
	}
	return engine.Watermark{}, false
}

// awaitMark waits until the watermark of an operator in one task has reached a time in ms.
func (n *node) awaitMark(operator string, partition int32, ms int64) {
	n.s.t.Helper()
	n.s.await(fmt.Sprintf("%s/%d at %d", operator, partition, ms), func() bool {
		n.mustLive()
		w, ok := n.mark(operator, partition)
		return ok && w.W >= ms
	})
}

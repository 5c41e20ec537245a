package tidemarktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Scenario is a topology that histories run against, with what is needed to judge them.
type Scenario struct {
	// Name is what histories call it by.
	Name string
	// Build makes the topology.
	Build func() *topology.Topology
	// Forms of topics and stores; those not listed are text to int64.
	Forms []Form
	// Window is that of the first windowed aggregate; the zero Window for none. With Lateness, how long it takes late
	// records, and Time, the settings of its input, it tells which records are late by their own partition.
	Window   window.Window
	Lateness time.Duration
	Time     []watermark.Option
	// Marker is a key whose records only move the watermark: the topology drops them behind the source.
	Marker string
	// EventTime returns the time that a value, as the history has it, carries in ms; nil if the timestamp counts. It
	// returns false for a value without one.
	EventTime func(value string) (int64, bool)
	// Clocked says that the wall clock decides about panes, as with Every: a crash may then shift them.
	Clocked bool
	// Sum says that the final value of a window is the sum of its panes, as in discarding mode.
	Sum bool
}

func (s *Scenario) forms() map[string]Form {
	m := map[string]Form{}
	for _, f := range s.Forms {
		m[f.name] = f
	}
	return m
}

// ownLate returns the first step that sends a record which is late by its own partition with that many partitions, and
// the first that is too late for every window: the records whose fate depends on how partitions interleave. For sessions
// that is a record at or below the watermark of its partition.
func (s *Scenario) ownLate(h *history, partitions int) (late, expired *step, err error) {
	if s.Window.Kind() == 0 {
		return nil, nil, nil
	}
	set, err := watermark.New(s.Time...)
	if err != nil {
		return nil, nil, err
	}
	type place struct {
		topic     string
		partition int
	}
	gens := map[place]watermark.Generator{}
	forms := s.forms()
	var bounds []window.Bounds
	now := h.start.UnixMilli()
	for i := range h.steps {
		st := &h.steps[i]
		if st.verb == "advance" {
			d, err := time.ParseDuration(st.args[0])
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", st.line+1, err)
			}
			now += d.Milliseconds()
		}
		if st.verb != "emit" {
			continue
		}
		e, err := st.emission()
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", st.line+1, err)
		}
		to := []int{e.partition}
		switch e.partition {
		case -2:
			to = to[:0]
			for p := range partitions {
				to = append(to, p)
			}
		case -1:
			f, ok := forms[e.topic]
			if !ok {
				f = defaultForm
			}
			key, err := f.key.parse(e.key)
			if err != nil {
				return nil, nil, err
			}
			to[0] = 0
			if key != nil {
				to[0] = int(processor.PartitionOf(key, int32(partitions)))
			}
		}
		for _, p := range to {
			g := gens[place{e.topic, p}]
			if g == nil {
				g = set.New()
				gens[place{e.topic, p}] = g
			}
			if strings.HasPrefix(e.value, "x:") {
				continue // bytes as they are stand for a value that cannot be decoded
			}
			if s.EventTime != nil {
				at, ok := s.EventTime(e.value)
				if !ok {
					continue
				}
				e.at = at
			} else if e.at == -1 || set.MaxFuture > 0 && e.at > now+set.MaxFuture.Milliseconds() {
				continue // it has no time, or one that does not count
			}
			if w := g.Watermark(); w != watermark.Unknown && e.key != s.Marker {
				if bounds = s.Window.Assign(bounds[:0], e.at); s.Window.Kind() == window.KindSession {
					bounds[0].End = e.at + 1
				}
				for _, b := range bounds {
					if w >= b.Last() && late == nil {
						late = st
					}
					if w-s.Lateness.Milliseconds() >= b.Last() && expired == nil && s.Lateness != window.Forever {
						expired = st
					}
				}
			}
			g.Observe(&watermark.Record{Time: e.at, Appended: e.at})
		}
	}
	return late, expired, nil
}

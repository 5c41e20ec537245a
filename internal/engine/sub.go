package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/topology"
)

// sub is a sub-topology with the names and counts it has on this broker.
type sub struct {
	*topology.Sub
	id          string   // inherited from the control topic, or the topology's own
	group       int      // of sub-topologies that are connected, see align.go
	tasks       int32    // number of partitions of its sources
	sources     []string // topic per source
	partitions  []int32  // partition count per source
	sinks       []sinkTopic
	changelogs  []changelogTopic
	changelogOf []int // index into changelogs per store, -1 without one
	progress    string
	topicIDs    map[string][16]byte // of its sources, changelogs and progress topic
	ids         []changelog.TopicID // the same, sorted
	records     prometheus.Counter
}

// changelogTopic is the changelog of one store.
type changelogTopic struct {
	store    int // index into the sub-topology's stores
	name     string
	maxBytes int
}

// writes returns every partition a task writes to.
func (t *task) writes() []topicPartition {
	s := t.sub
	out := []topicPartition{{s.progress, t.id.Partition}}
	for _, c := range s.changelogs {
		out = append(out, topicPartition{c.name, t.id.Partition})
	}
	for _, k := range s.sinks {
		for p := range k.partitions {
			out = append(out, topicPartition{k.name, p})
		}
	}
	for _, d := range [...]*sinkTopic{&t.worker.e.deadLetters, &t.worker.e.late} {
		for p := range d.partitions {
			out = append(out, topicPartition{d.name, p})
		}
	}
	return out
}

// timed reports whether any part of the topology asks for the event time.
func (e *Engine) timed() bool {
	for _, s := range e.subs {
		if s.Timed {
			return true
		}
	}
	return false
}

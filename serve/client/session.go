package client

import (
	"slices"
	"sync"

	"github.com/tidemark/tidemark/query"
)

// Session remembers what one reader has seen and written, so that none of its reads goes back in time, whichever instance
// answers, and so that it reads what it has written. It may be used by many goroutines: what one of them has seen, a question
// that another begins afterwards reflects.
//
// A session costs a number per task that was read and per partition that was written.
type Session struct {
	mu      sync.Mutex
	commits map[query.Task]int64
	offsets map[place]int64
}

type place struct {
	topic     string
	partition int32
}

// NewSession returns a session that begins with a position: that of an earlier session, or nil.
func NewSession(p query.Position) *Session {
	s := &Session{commits: map[query.Task]int64{}, offsets: map[place]int64{}}
	s.Saw(p)
	return s
}

// Saw makes later reads reflect a position. Readers call it with those of their answers.
func (s *Session) Saw(p query.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range p {
		if q.Commit {
			raise(s.commits, query.Task{Sub: q.Name, Partition: q.Partition}, q.Number)
		} else {
			raise(s.offsets, place{q.Name, q.Partition}, q.Number)
		}
	}
}

// Wrote makes later reads reflect a record that was produced, of stores whose tasks read the topic themselves: see
// Store.topics of the API. Behind a repartition a record is seen later, and only a watermark can be waited for.
func (s *Session) Wrote(topic string, partition int32, offset int64) {
	s.Saw(query.Position{{Name: topic, Partition: partition, Number: offset}})
}

// Position returns all that later reads reflect. Its text can be handed to another process.
func (s *Session) Position() query.Position {
	return s.about("", nil, nil)
}

// about returns what is about a sub-topology that reads some topics, and about one partition of it if it is not nil. An
// empty sub stands for everything.
func (s *Session) about(sub string, topics []string, partition *int32) query.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out query.Position
	for t, n := range s.commits {
		if (sub == "" || t.Sub == sub) && (partition == nil || *partition == t.Partition) {
			out = append(out, query.Point{Name: t.Sub, Partition: t.Partition, Commit: true, Number: n})
		}
	}
	for at, n := range s.offsets {
		if (sub == "" || slices.Contains(topics, at.topic)) && (partition == nil || *partition == at.partition) {
			out = append(out, query.Point{Name: at.topic, Partition: at.partition, Number: n})
		}
	}
	return query.Position(nil).Merge(out)
}

func raise[K comparable](m map[K]int64, k K, n int64) {
	if old, ok := m[k]; !ok || old < n {
		m[k] = n
	}
}

package changelog

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicMeta is what a fetch needs to know of a topic.
type topicMeta struct {
	id      [16]byte
	leaders []leader // by partition
}

type leader struct {
	broker int
	epoch  int32
	err    error // no leader now
}

// meta returns what is known of a topic, asking the cluster when nothing is.
func (r *Reader) meta(ctx context.Context, topic string) (topicMeta, error) {
	r.mu.Lock()
	m, ok := r.topics[topic]
	r.mu.Unlock()
	if ok {
		return m, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	kresp, err := r.cl.Request(ctx, req)
	if err != nil {
		return topicMeta{}, err
	}
	resp := kresp.(*kmsg.MetadataResponse)
	if len(resp.Topics) != 1 {
		return topicMeta{}, errors.New("the broker answered for another number of topics than asked for")
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return topicMeta{}, err
	}
	m = topicMeta{id: resp.Topics[0].TopicID, leaders: make([]leader, len(resp.Topics[0].Partitions))}
	for _, p := range resp.Topics[0].Partitions {
		if p.Partition < 0 || int(p.Partition) >= len(m.leaders) {
			return topicMeta{}, errors.New("the broker numbers the partitions of the topic with gaps")
		}
		l := leader{broker: int(p.Leader), epoch: p.LeaderEpoch}
		if p.Leader < 0 {
			l.err = kerr.LeaderNotAvailable
		}
		m.leaders[p.Partition] = l
	}
	r.mu.Lock()
	r.topics[topic] = m
	r.mu.Unlock()
	return m, nil
}

// forget makes the next meta ask the cluster again.
func (r *Reader) forget(topic string) {
	r.mu.Lock()
	delete(r.topics, topic)
	r.mu.Unlock()
}

// leaderOf returns where to fetch a partition. A partition the topic does not have
// is the error of a topic that does not exist.
func (r *Reader) leaderOf(ctx context.Context, topic string, partition int32) (leader, [16]byte, error) {
	m, err := r.meta(ctx, topic)
	if err != nil {
		return leader{}, [16]byte{}, err
	}
	if partition < 0 || int(partition) >= len(m.leaders) {
		return leader{}, m.id, kerr.UnknownTopicOrPartition
	}
	l := m.leaders[partition]
	return l, m.id, l.err
}

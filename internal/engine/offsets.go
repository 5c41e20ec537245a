package engine

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetCommit is one partition of an offset commit.
type offsetCommit struct {
	topic     string
	topicID   [16]byte
	partition int32
	offset    int64
	metadata  string
}

// txnOffsetCommit sends the offsets of a transaction through its producer. Every partition of the answer
// must be there with code 0: the broker accepts partition by partition, and EndTxn would commit the rest.
func (e *Engine) txnOffsetCommit(ctx context.Context, p *producer, member string, generation int32, commits []offsetCommit) error {
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("producer id: %w", err)
	}
	if !e.tv2 {
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = p.txnID, id, epoch, e.cfg.App
		resp, err := add.RequestWith(ctx, p.client)
		if err != nil {
			return fmt.Errorf("AddOffsetsToTxn: %w", err)
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return fmt.Errorf("AddOffsetsToTxn: %w", err)
		}
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = p.txnID, e.cfg.App, id, epoch
	req.MemberID, req.Generation = member, generation
	if e.cfg.Static != "" {
		req.InstanceID = kmsg.StringPtr(e.cfg.Static)
	}
	index := make(map[string]int)
	for _, c := range commits {
		i, ok := index[c.topic]
		if !ok {
			i = len(req.Topics)
			index[c.topic] = i
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic, t.TopicID = c.topic, c.topicID
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = c.partition, c.offset
		rp.Metadata = kmsg.StringPtr(c.metadata)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("TxnOffsetCommit: %w", err)
	}
	answered := 0
	for _, t := range resp.Topics {
		for _, rp := range t.Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				return fmt.Errorf("TxnOffsetCommit: %s/%d: %w", t.Topic, rp.Partition, err)
			}
			answered++
		}
	}
	if answered != len(commits) {
		return fmt.Errorf("TxnOffsetCommit: %d of %d partitions answered", answered, len(commits))
	}
	return nil
}

// groupOffsetCommit commits offsets without a transaction (at-least-once).
func (e *Engine) groupOffsetCommit(ctx context.Context, member string, generation int32, commits []offsetCommit) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = e.cfg.App, member, generation
	if e.cfg.Static != "" {
		req.InstanceID = kmsg.StringPtr(e.cfg.Static)
	}
	index := make(map[string]int)
	for _, c := range commits {
		i, ok := index[c.topic]
		if !ok {
			i = len(req.Topics)
			index[c.topic] = i
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = c.topic, c.topicID
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = c.partition, c.offset
		rp.Metadata = kmsg.StringPtr(c.metadata)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	resp, err := req.RequestWith(ctx, e.source.client)
	if err != nil {
		return fmt.Errorf("OffsetCommit: %w", err)
	}
	answered := 0
	for _, t := range resp.Topics {
		for _, rp := range t.Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				return fmt.Errorf("OffsetCommit: %s/%d: %w", t.Topic, rp.Partition, err)
			}
			answered++
		}
	}
	if answered != len(commits) {
		return fmt.Errorf("OffsetCommit: %d of %d partitions answered", answered, len(commits))
	}
	return nil
}

var _ kgo.HookBrokerE2E = (*producer)(nil)

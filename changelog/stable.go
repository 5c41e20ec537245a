package changelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/clock"
)

// ErrUnstable reports that a commit of a partition stayed pending for as long as
// the caller was willing to wait: there is no verdict on it.
var ErrUnstable = errors.New("offset commit is pending")

// UnstableError names the partitions whose commit stayed pending. It wraps ErrUnstable.
type UnstableError struct {
	Group      string
	Partitions []TopicPartition
	Waited     time.Duration
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("changelog: stable offsets of group %q: %v: %v after %v", e.Group, e.Partitions, ErrUnstable, e.Waited)
}

// Unwrap returns ErrUnstable.
func (e *UnstableError) Unwrap() error { return ErrUnstable }

// Committed is the committed offset of one partition.
type Committed struct {
	Found    bool   // false: the group has committed nothing for the partition
	Offset   int64  // next offset to read; -1 when not Found
	Epoch    int32  // leader epoch of the commit, -1 when unknown
	Metadata string // text left with the offset
}

// StableOffsets returns the committed offset of each partition, once no commit of
// any of them is pending. Pending partitions are asked again every few milliseconds
// for at most wait, then the error is an *UnstableError; a coordinator that is not
// ready is waited for as long. Every partition asked for is in the result. A topic
// that does not exist is a *TopicGoneError.
//
// The partitions are named in the request: asked for all, the broker leaves out a
// partition that has only a pending commit, which then looks like one without any.
func StableOffsets(ctx context.Context, cl *kgo.Client, clk clock.Clock, group string, parts []TopicPartition, wait time.Duration) (map[TopicPartition]Committed, error) {
	out := make(map[TopicPartition]Committed, len(parts))
	open := slices.Clone(parts)
	start := clk.Now()
	for try := 0; len(open) > 0; try++ {
		answer, err := fetchOffsets(ctx, cl, group, open)
		var pending []TopicPartition
		unknown := ""
		if err == nil {
			pending, unknown, err = settle(open, answer, out)
		}
		late := clk.Now().Sub(start) >= wait
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("changelog: stable offsets of group %q: %w", group, context.Cause(ctx))
		case err != nil && (late || !again(err)):
			return nil, fmt.Errorf("changelog: stable offsets of group %q: %w", group, err)
		case err == nil && len(pending) == 0 && unknown == "":
			return out, nil
		case unknown != "" && (try >= listTries || late && try > 3):
			return nil, &TopicGoneError{Topic: unknown}
		case unknown != "":
			// The client may know the topic by the id of its predecessor.
			refreshTopic(ctx, cl, unknown)
		case err == nil && late:
			slices.SortFunc(pending, compareTopicPartition)
			return nil, &UnstableError{group, pending, wait}
		}
		open = slices.DeleteFunc(open, func(p TopicPartition) bool { _, ok := out[p]; return ok })
		d := min(backoff(try), 5*time.Millisecond) // a marker is written within milliseconds
		if unknown != "" {
			d = backoff(try)
		}
		if err := pause(ctx, clk, d); err != nil {
			return nil, fmt.Errorf("changelog: stable offsets of group %q: %w", group, err)
		}
	}
	return out, nil
}

// settle moves the partitions with a verdict into out and returns the pending ones
// and a topic the broker does not know.
func settle(asked []TopicPartition, answer map[TopicPartition]kmsg.OffsetFetchResponseGroupTopicPartition, out map[TopicPartition]Committed) (pending []TopicPartition, unknown string, err error) {
	for _, p := range asked {
		a, ok := answer[p]
		if !ok {
			// An answer by topic id that the client cannot name any more looks like this.
			unknown = p.Topic
			continue
		}
		switch code := kerr.ErrorForCode(a.ErrorCode); {
		case code == nil && a.Offset >= 0:
			c := Committed{Found: true, Offset: a.Offset, Epoch: a.LeaderEpoch}
			if a.Metadata != nil {
				c.Metadata = *a.Metadata
			}
			out[p] = c
		case code == nil:
			out[p] = Committed{Offset: -1, Epoch: -1}
		case errors.Is(code, kerr.UnstableOffsetCommit):
			pending = append(pending, p)
		case unknownTopic(code):
			unknown = p.Topic
		default:
			return nil, "", fmt.Errorf("%v: %w", p, code)
		}
	}
	return pending, unknown, nil
}

// fetchOffsets sends one OffsetFetch. The client fills in topic ids where the
// negotiated version wants them, and names in the answer.
func fetchOffsets(ctx context.Context, cl *kgo.Client, group string, parts []TopicPartition) (map[TopicPartition]kmsg.OffsetFetchResponseGroupTopicPartition, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for topic, ps := range byTopic(parts) {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic = topic
		t.Partitions = ps
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	kresp, err := cl.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := kresp.(*kmsg.OffsetFetchResponse)
	if resp.Version < 7 {
		// Below version 7 the broker ignores RequireStable and answers an offset that a
		// pending commit is about to replace.
		return nil, fmt.Errorf("the broker cannot tell pending commits (OffsetFetch version %d, 7 is needed)", resp.Version)
	}
	if len(resp.Groups) != 1 || resp.Groups[0].Group != group {
		return nil, fmt.Errorf("the broker answered for %d groups, asked for one", len(resp.Groups))
	}
	out := make(map[TopicPartition]kmsg.OffsetFetchResponseGroupTopicPartition)
	switch err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); {
	case errors.Is(err, kerr.GroupIDNotFound):
		// From version 10 on a group that never was is an error of its own.
		for _, p := range parts {
			out[p] = kmsg.OffsetFetchResponseGroupTopicPartition{Partition: p.Partition, Offset: -1, LeaderEpoch: -1}
		}
		return out, nil
	case err != nil:
		return nil, err
	}
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			out[TopicPartition{t.Topic, p.Partition}] = p
		}
	}
	return out, nil
}

// refreshTopic makes the client forget what it knows of a topic's id. The error does
// not matter: the request that follows reports it.
func refreshTopic(ctx context.Context, cl *kgo.Client, topic string) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	_, _ = cl.Request(ctx, req)
}

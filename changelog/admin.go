package changelog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/clock"
)

const createTimeout = 30_000 // milliseconds the controller may take

// DescribeTopics returns those of the topics that exist, sorted by name, with their
// configs when withConfigs is set. A topic the client may not see is an error.
func DescribeTopics(ctx context.Context, cl *kgo.Client, topics []string, withConfigs bool) ([]Have, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	kresp, err := cl.Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("changelog: describe topics: %w", err)
	}
	var have []Have
	for _, t := range kresp.(*kmsg.MetadataResponse).Topics {
		name := "?"
		if t.Topic != nil {
			name = *t.Topic
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case unknownTopic(err):
			continue
		case err != nil && !errors.Is(err, kerr.LeaderNotAvailable):
			return nil, fmt.Errorf("changelog: describe topic %q: %w", name, err)
		}
		have = append(have, Have{Topic: name, ID: t.TopicID, Partitions: int32(len(t.Partitions))})
	}
	slices.SortFunc(have, func(a, b Have) int { return strings.Compare(a.Topic, b.Topic) })
	if withConfigs && len(have) > 0 {
		err = describeConfigs(ctx, cl, have)
	}
	return have, err
}

func describeConfigs(ctx context.Context, cl *kgo.Client, have []Have) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	at := make(map[string]int, len(have))
	for i, h := range have {
		at[h.Topic] = i
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType = kmsg.ConfigResourceTypeTopic
		r.ResourceName = h.Topic
		req.Resources = append(req.Resources, r)
	}
	kresp, err := cl.Request(ctx, req)
	if err != nil {
		return fmt.Errorf("changelog: describe topic configs: %w", err)
	}
	for _, r := range kresp.(*kmsg.DescribeConfigsResponse).Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("changelog: describe the configs of topic %q: %w", r.ResourceName, err)
		}
		i, ok := at[r.ResourceName]
		if !ok {
			continue
		}
		have[i].Configs = make(map[string]string, len(r.Configs))
		for _, c := range r.Configs {
			if c.Value != nil {
				have[i].Configs[c.Name] = *c.Value
			}
		}
	}
	return nil
}

// CreateTopics creates missing topics as Verify returned them and returns when the cluster knows them all: the controller
// answers before the brokers have heard. A topic that another instance has created
// meanwhile is no error; describe and verify again afterwards. The error joins one per
// topic.
func CreateTopics(ctx context.Context, cl *kgo.Client, want []Want) error {
	if len(want) == 0 {
		return nil
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = createTimeout
	for _, w := range want {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic = w.Topic
		t.NumPartitions = w.Partitions
		t.ReplicationFactor = -1
		if w.Replicas > 0 {
			t.ReplicationFactor = w.Replicas
		}
		for _, k := range slices.Sorted(maps.Keys(w.Configs)) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name = k
			c.Value = kmsg.StringPtr(w.Configs[k])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	kresp, err := cl.Request(ctx, req)
	if err != nil {
		return fmt.Errorf("changelog: create topics: %w", err)
	}
	var errs []error
	for _, t := range kresp.(*kmsg.CreateTopicsResponse).Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			continue
		}
		if t.ErrorMessage != nil {
			err = fmt.Errorf("%w (%s)", err, *t.ErrorMessage)
		}
		errs = append(errs, fmt.Errorf("changelog: create topic %q: %w", t.Topic, err))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return awaitTopics(ctx, cl, want)
}

// awaitTopics waits until topics just created are described with a leader for every
// partition. It asks for metadata itself: the client looks again for a topic it has not
// found only after its metadata's minimum age, five seconds by default.
func awaitTopics(ctx context.Context, cl *kgo.Client, want []Want) error {
	for {
		known, err := ledTopics(ctx, cl, want)
		if err != nil {
			return fmt.Errorf("changelog: wait for new topics: %w", err)
		}
		if known {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("changelog: wait for new topics: %w", ctx.Err())
		case <-clock.Real().After(10 * time.Millisecond):
		}
	}
}

// ledTopics reports whether every partition of the topics has a leader.
func ledTopics(ctx context.Context, cl *kgo.Client, want []Want) (bool, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, w := range want {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(w.Topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := cl.Request(ctx, req)
	if err != nil {
		return false, err
	}
	for _, t := range resp.(*kmsg.MetadataResponse).Topics {
		if t.ErrorCode != 0 {
			return false, nil
		}
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Leader < 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

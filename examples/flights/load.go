package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopics creates the topics that are missing. The input keeps everything, although its timestamps of 2013 say
// that it is old; the results keep the latest record per key.
func createTopics(ctx context.Context, adm *kadm.Client, app string, partitions int) error {
	forever, latest := "-1", "compact"
	configs := map[string]map[string]*string{
		inputTopic(app):   {"retention.ms": &forever},
		carrierTopic(app): {"retention.ms": &forever, "cleanup.policy": &latest},
		routeTopic(app):   {"retention.ms": &forever, "cleanup.policy": &latest},
		hourTopic(app):    {"retention.ms": &forever}, // every pane, not only the last of each hour
	}
	for topic, config := range configs {
		_, err := adm.CreateTopic(ctx, int32(partitions), -1, config, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("flights: create topic %s: %w", topic, err)
		}
	}
	return nil
}

// load writes the flights of a file to the input topic, keyed by airport, and returns how many the file has. It can be killed at
// any moment and started again: the rows of one partition are written in order, each once, so a partition
// that holds n records holds the first n rows of its share, and these are skipped. rate is in rows per
// second, 0 for as fast as possible.
func load(ctx context.Context, cl *kgo.Client, file io.Reader, app string, rate float64) (rows int64, err error) {
	topic := inputTopic(app)
	held, err := recordsHeld(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return 0, err
	}
	share := kgo.StickyKeyPartitioner(nil).ForTopic(topic)

	// A record that cannot be written ends the loop.
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			cancel(err)
		}
	}
	start := time.Now()
	err = readFlights(file, func(f Flight) error {
		value, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("flights: %w", err)
		}
		r := &kgo.Record{Topic: topic, Key: []byte(f.Origin), Value: value, Timestamp: f.Scheduled}
		r.Partition = int32(share.Partition(r, len(held)))
		rows++
		if held[r.Partition] > 0 {
			held[r.Partition]--
			return nil
		}
		if rate > 0 {
			select {
			case <-loading.Done():
			case <-time.After(time.Until(start.Add(time.Duration(float64(rows) / rate * 1e9)))):
			}
		}
		cl.Produce(ctx, r, done)
		return context.Cause(loading)
	})
	if err == nil {
		err = cl.Flush(ctx)
	}
	if cause := context.Cause(loading); cause != nil {
		err = fmt.Errorf("flights: load: %w", cause)
	}
	for p, n := range held {
		if err == nil && n > 0 {
			err = fmt.Errorf("flights: %s/%d holds %d records more than the file has: it was loaded from another file; use another -app", topic, p, n)
		}
	}
	return rows, err
}

// recordsHeld returns how many records each partition of a topic holds.
func recordsHeld(ctx context.Context, adm *kadm.Client, topic string) ([]int64, error) {
	for {
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err == nil && len(ends[topic]) > 0 {
			held := make([]int64, len(ends[topic]))
			ends.Each(func(o kadm.ListedOffset) { held[o.Partition] = o.Offset })
			return held, nil
		}
		// A topic that was created a moment ago has no leaders yet.
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) && !kerr.IsRetriable(err) {
			return nil, fmt.Errorf("flights: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

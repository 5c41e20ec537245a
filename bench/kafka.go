package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/check"
	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/internal/kafkatest"
)

// bench holds what all runs share.
type bench struct {
	options
	addr      string
	brokerPid int // 0 for a broker of somebody else
	client    *kgo.Client
	adm       *kadm.Client
}

// open makes the directories, starts a broker unless there is one, and connects. done undoes all that.
func open(ctx context.Context, o options) (b *bench, done func(), err error) {
	var undo []func()
	done = func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "tidemark-bench-"); err != nil {
			return nil, nil, err
		}
		undo = append(undo, func() { _ = os.RemoveAll(o.work) })
	}
	b = &bench{options: o, addr: o.brokers}
	if o.brokers == "" {
		broker, err := kafkatest.Start(ctx, kafkatest.Options{Dir: filepath.Join(o.work, "broker"), Profile: kafkatest.Bench})
		if err != nil {
			return nil, nil, err
		}
		undo = append(undo, func() { _ = broker.Stop() })
		b.addr, b.brokerPid = broker.Addr(), broker.Pid()
	}
	if err := b.connect(); err != nil {
		return nil, nil, err
	}
	undo = append(undo, b.client.Close)
	return b, done, nil
}

func (b *bench) connect() error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	b.client, b.adm = cl, kadm.NewClient(cl)
	return nil
}

// recreate deletes a topic and creates it empty. Its records carry old timestamps, so nothing is deleted by age.
func (b *bench) recreate(ctx context.Context, topic string) error {
	if _, err := b.adm.DeleteTopics(ctx, topic); err != nil {
		return err
	}
	forever := "-1"
	return retry(ctx, func() error {
		_, err := b.adm.CreateTopic(ctx, workload.Partitions, 1, map[string]*string{"retention.ms": &forever}, topic)
		return err
	})
}

// retry repeats f for half a minute: deletions take effect after they are answered, and a killed member stays in its
// group until its session ends.
func retry(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *bench) load(ctx context.Context, s workload.Spec, n int) error {
	if err := b.recreate(ctx, s.Input()); err != nil {
		return err
	}
	return workload.Load(ctx, b.addr, s, n, b.seed)
}

// reset removes what an earlier run of the group has left and makes an empty output topic.
func (b *bench) reset(ctx context.Context, group, output string) error {
	err := retry(ctx, func() error {
		_, err := b.adm.DeleteGroup(ctx, group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	internal, err := b.internal(ctx, group)
	if err != nil {
		return err
	}
	if len(internal) > 0 {
		if _, err := b.adm.DeleteTopics(ctx, internal...); err != nil {
			return err
		}
	}
	if err := b.recreate(ctx, output); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // the broker removes the old logs outside of the measured time
	return nil
}

// internal lists the topics a system has made for itself.
func (b *bench) internal(ctx context.Context, group string) ([]string, error) {
	topics, err := b.adm.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(topics.Names(), func(t string) bool { return !strings.HasPrefix(t, group+"-") }), nil
}

// waitDrained waits until the group has committed the end of the input, and the output topic and repartition topics
// have stopped growing: five looks in a row, two commit intervals apart.
func (b *bench) waitDrained(ctx context.Context, group, input, output string, commitMs int) error {
	internal, err := b.internal(ctx, group)
	if err != nil {
		return err
	}
	watched := []string{output}
	repartitions := false
	for _, t := range internal {
		if strings.HasSuffix(t, "-repartition") {
			watched = append(watched, t)
			repartitions = true
		}
	}
	pause := time.Duration(max(2*commitMs, 50)) * time.Millisecond
	before, same := int64(-1), 0
	for {
		ends, err := b.adm.ListEndOffsets(ctx, append([]string{input}, watched...)...)
		if err != nil {
			return err
		}
		committed, err := b.adm.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		done, grown := true, int64(0)
		ends.Each(func(o kadm.ListedOffset) {
			if o.Topic == input {
				c, ok := committed.Lookup(o.Topic, o.Partition)
				done = done && (o.Offset == 0 || ok && c.At >= o.Offset)
				return
			}
			grown += o.Offset
		})
		switch {
		case done && !repartitions:
			return nil
		case done && grown == before:
			same++
		default:
			same = 0
		}
		if done && same >= 5 {
			return nil
		}
		before = grown
		select {
		case <-ctx.Done():
			return fmt.Errorf("not drained: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

// logBytes returns the sizes on the broker's disk of the output topic and of the system's own topics.
func (b *bench) logBytes(ctx context.Context, group, topic string) (output, internal int64, err error) {
	dirs, err := b.adm.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			switch {
			case p.Topic == topic:
				output += p.Size
			case strings.HasPrefix(p.Topic, group+"-"):
				internal += p.Size
			}
		})
	})
	return output, internal, nil
}

// verify reads the output topic and returns how many committed records it holds.
func (b *bench) verify(ctx context.Context, s workload.Spec, n int) (records int64, err error) {
	c, err := check.New(s, n, b.seed)
	if err != nil {
		return 0, err
	}
	ends, err := b.adm.ListCommittedOffsets(ctx, s.Output())
	if err != nil {
		return 0, err
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumeTopics(s.Output()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollRecords(ctx, 50_000)
		if ctx.Err() != nil {
			return records, ctx.Err()
		}
		var bad error
		fetches.EachError(func(_ string, _ int32, err error) { bad = err })
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := left[r.Partition]
			if !ok {
				return
			}
			if r.Offset >= end-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			records++
			if bad == nil {
				bad = c.Record(r.Key, r.Value)
			}
		})
		if bad != nil {
			return records, bad
		}
	}
	return records, c.Finish()
}

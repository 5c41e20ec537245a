// Package ceiling is the least a Go program on the same Kafka client can do for a workload: no restore, no state store,
// no rebalance. What a library costs is given against it. It must stay free of Tidemark. It runs on the caller's
// goroutine, with one more that prints progress.
package ceiling

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// operation is what a ceiling does with its input.
type operation interface {
	record(cl *kgo.Client, r *kgo.Record)
	beforeCommit(cl *kgo.Client)
}

// Main parses the arguments of a measured system and runs until ctx ends: W1 as a transactional pass-through with the
// filter, W2 and W2Z as a count in a map with one changelog and one output record per dirty key and commit.
func Main(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("ceiling", flag.ExitOnError)
	addr := f.String("bootstrap", "127.0.0.1:9092", "broker address")
	group := f.String("group", "ceiling", "consumer group and prefix of internal topics")
	name := f.String("w", "W1", "workload: W1, W2 or W2Z")
	commitMs := f.Int("commit-ms", 100, "commit interval")
	f.String("state", "", "ignored")
	if err := f.Parse(args); err != nil {
		return err
	}
	s, err := workload.Find(*name)
	if err != nil {
		return err
	}
	var op operation
	switch s.Name {
	case "W1":
		op = &pass{ctx, s.Output()}
	case "W2", "W2Z":
		changelog := *group + "-counts-changelog"
		if err := createChangelog(ctx, *addr, changelog); err != nil {
			return err
		}
		op = &count{ctx: ctx, out: s.Output(), changelog: changelog, index: map[string]int32{}}
	default:
		return fmt.Errorf("no ceiling for %s", s.Name)
	}
	var processed atomic.Int64
	ended := make(chan error, 1)
	go func() {
		ended <- transact(ctx, *addr, *group, s, time.Duration(*commitMs)*time.Millisecond, op, &processed)
	}()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return err
		case <-tick.C:
			fmt.Fprintln(out, "progress", processed.Load())
		}
	}
}

// transact consumes, processes and produces in one transaction per commit interval.
func transact(ctx context.Context, addr, group string, s workload.Spec, commit time.Duration, op operation, processed *atomic.Int64) error {
	sess, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(addr), kgo.MetadataMinAge(100*time.Millisecond),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(s.Input()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.FetchMaxPartitionBytes(4<<20),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), // output goes where its input came from
		kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(256<<10),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.MaxBufferedRecords(100_000),
		kgo.TransactionalID(group+"-0"), kgo.TransactionTimeout(10*time.Second),
	)
	if err != nil {
		return err
	}
	defer sess.Close()
	for {
		if err := sess.Begin(); err != nil {
			return err
		}
		next := time.Now().Add(commit)
		for time.Now().Before(next) && ctx.Err() == nil {
			poll, cancel := context.WithDeadline(ctx, next)
			fetches := sess.PollRecords(poll, 5000)
			cancel()
			if ctx.Err() != nil {
				break
			}
			n := int64(0)
			fetches.EachRecord(func(r *kgo.Record) {
				n++
				op.record(sess.Client(), r)
			})
			processed.Add(n)
		}
		op.beforeCommit(sess.Client())
		// The end of a transaction is not cut short by the end of the program.
		if _, err := sess.End(context.WithoutCancel(ctx), kgo.TransactionEndTry(ctx.Err() == nil)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// pass is W1.
type pass struct {
	ctx context.Context
	out string
}

func (p *pass) record(cl *kgo.Client, r *kgo.Record) {
	amount := workload.Amount(r.Value)
	if amount&1 != 0 {
		return
	}
	value := append(make([]byte, 0, len(r.Value)), r.Value...)
	workload.SetAmount(value, amount+1)
	cl.Produce(p.ctx, &kgo.Record{Topic: p.out, Partition: r.Partition, Timestamp: r.Timestamp, Key: r.Key, Value: value}, nil)
}

func (p *pass) beforeCommit(*kgo.Client) {}

// count is W2.
type count struct {
	ctx            context.Context
	out, changelog string
	index          map[string]int32
	rows           []row
	dirty          []int32
}

type row struct {
	key       []byte
	n         int64
	time      time.Time
	partition int32
	dirty     bool
}

func (c *count) record(_ *kgo.Client, r *kgo.Record) {
	i, ok := c.index[string(r.Key)]
	if !ok {
		i = int32(len(c.rows))
		key := string(r.Key)
		c.index[key] = i
		c.rows = append(c.rows, row{key: []byte(key), partition: r.Partition})
	}
	w := &c.rows[i]
	w.n++
	w.time = r.Timestamp
	if !w.dirty {
		w.dirty = true
		c.dirty = append(c.dirty, i)
	}
}

func (c *count) beforeCommit(cl *kgo.Client) {
	for _, i := range c.dirty {
		w := &c.rows[i]
		w.dirty = false
		value := binary.BigEndian.AppendUint64(nil, uint64(w.n))
		for _, topic := range []string{c.changelog, c.out} {
			cl.Produce(c.ctx, &kgo.Record{Topic: topic, Partition: w.partition, Timestamp: w.time, Key: w.key, Value: value}, nil)
		}
	}
	c.dirty = c.dirty[:0]
}

func createChangelog(ctx context.Context, addr, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	compact := "compact"
	_, err = kadm.NewClient(cl).CreateTopic(ctx, workload.Partitions, -1, map[string]*string{"cleanup.policy": &compact}, topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		err = nil
	}
	return err
}

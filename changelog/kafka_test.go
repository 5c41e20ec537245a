package changelog_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/kafkatest"
)

// real returns a cluster whose broker is the shared Kafka, and a prefix for its names.
func real(t *testing.T) (*cluster, string) {
	addr := kafkatest.Shared(t)
	c := &cluster{T: t, addrs: []string{addr}}
	c.ctx, c.cancel = context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(c.cancel)
	c.admin = c.client("admin")
	return c, "cl" + rand.Text()[:8]
}

func (c *cluster) create(w changelog.Want) {
	c.Helper()
	c.ok(changelog.CreateTopics(c.ctx, c.admin, []changelog.Want{w}))
	c.Cleanup(func() {
		req := kmsg.NewPtrDeleteTopicsRequest()
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(w.Topic)
		req.Topics = append(req.Topics, t)
		if _, err := c.admin.Request(context.Background(), req); err != nil {
			c.Log(err)
		}
	})
}

func TestKafkaTopicsAreAsWanted(t *testing.T) {
	c, prefix := real(t)
	n, err := changelog.NewNames(prefix, 0)
	c.ok(err)
	want := []changelog.Want{
		changelog.WantRepartition(n.Repartition("x"), 3), changelog.WantChangelog(n.Changelog("x"), 3),
		changelog.WantProgress(n.Progress("x"), 3), changelog.WantControl(n.Control()),
		changelog.WantDeadLetter(n.DeadLetter(), 2), changelog.WantLate(n.Late(), 2),
	}
	var topics []string
	for _, w := range want {
		c.create(w)
		topics = append(topics, w.Topic)
	}
	have, err := changelog.DescribeTopics(c.ctx, c.admin, topics, true)
	c.ok(err)
	if missing, bad := changelog.Verify(want, have); len(missing)+len(bad) > 0 {
		t.Errorf("missing %v, bad %v", missing, bad)
	}
	for _, h := range have {
		if h.ID == [16]byte{} {
			t.Errorf("%s has no id", h.Topic)
		}
	}
	if v, err := changelog.TransactionVersion(c.ctx, c.admin); err != nil || v < 1 {
		t.Errorf("transaction.version %d, %v", v, err)
	}
}

// C-MARKER-END, aborted tail, and a position that only a transaction has moved.
func TestKafkaReadEndsOnMarkersAndAbortedRecords(t *testing.T) {
	c, topic := real(t)
	c.create(changelog.WantChangelog(topic, 1))
	p := c.client("p", kgo.TransactionalID(topic))
	c.transact(p, true, topic, 0, "a=1", "b=1")
	c.transact(p, false, topic, 0, "a=9", "c=9")
	c.transact(p, true, topic, 0, "d=1")
	c.transact(p, false, topic, 0, "a=9")
	r := c.reader()
	for from, want := range map[int64][]string{
		0: {"0:a=1", "1:b=1", "6:d=1"}, 2: {"6:d=1"}, 6: {"6:d=1"}, 7: nil, 8: nil, 9: nil, 10: nil, changelog.FromStart: {"0:a=1", "1:b=1", "6:d=1"},
	} {
		c.expect(r, topic, from, want...)
	}
}

// C-MARKER-END, variant: the broker has compacted the tail away. All old records of a
// key, and the markers of emptied transactions, are gone from closed segments.
func TestKafkaReadCompacted(t *testing.T) {
	c, topic := real(t)
	w := changelog.WantChangelog(topic, 1)
	for k, v := range map[string]string{
		"segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "0", "segment.ms": "500", "max.compaction.lag.ms": "600",
	} {
		w.Configs[k] = v
	}
	c.create(w)
	p := c.client("p", kgo.TransactionalID(topic))
	write := func(v string) {
		for i := range 60 {
			c.transact(p, i%3 != 1, topic, 0, fmt.Sprintf("k%d=%s", i%5, v), "x="+v, fmt.Sprintf("gone%d", i%7))
		}
	}
	write("1")
	r := c.reader()
	deadline, tick := time.After(90*time.Second), time.NewTicker(500*time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		end := c.bounds(topic, 0).HighWatermark
		records := 0
		rows := map[string]string{}
		pos, err := r.Read(c.ctx, []changelog.Partition{{Topic: topic, From: changelog.FromStart, Target: end}}, func(_ int, rec *kgo.Record) error {
			records++
			if rec.Value == nil {
				delete(rows, string(rec.Key))
			} else {
				rows[string(rec.Key)] = string(rec.Value)
			}
			return nil
		}, nil)
		c.ok(err)
		if pos[0] != end || len(rows) != 6 {
			t.Fatalf("position %d of %d, rows %v", pos[0], end, rows)
		}
		if records < 100 {
			t.Logf("%d records left of %d offsets", records, end)
			// From every position, the end is reached.
			for from := c.bounds(topic, 0).Start; from <= end; from += 1 + end/50 {
				if _, pos, err := c.read(r, changelog.Partition{Topic: topic, From: from, Target: end}); err != nil || pos != end {
					t.Fatalf("from %d: position %d of %d, %v", from, pos, end, err)
				}
			}
			return
		}
		select {
		case <-tick.C:
			c.transact(p, n%2 == 0, topic, 0, "x=1") // rolls the segment
		case <-deadline:
			t.Fatalf("%d records are left, nothing was compacted", records)
		}
	}
}

// C-EMPTY-HIGH and the bounds of a log that was emptied.
func TestKafkaReadEmptiedLog(t *testing.T) {
	c, topic := real(t)
	c.create(changelog.WantRepartition(topic, 1))
	c.put(c.admin, topic, 0, "a=1", "a=2", "a=3")
	left, err := changelog.Purge(c.ctx, c.admin, map[changelog.TopicPartition]int64{tp(topic, 0): 3})
	if err != nil || left[tp(topic, 0)] != 2 {
		t.Fatalf("left %v, %v", left, err)
	}
	r := c.reader()
	c.expect(r, topic, 2, "2:a=3")
	c.expect(r, topic, 3)
	for _, from := range []int64{1, 4} {
		_, _, err := c.read(r, changelog.Partition{Topic: topic, From: from, Target: 3})
		if re, ok := errors.AsType[*changelog.RangeError](err); !ok || re.Start != 2 || re.End != 3 || errors.Is(err, changelog.ErrBelowStart) != (from == 1) {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// On a real broker the commit of offsets is pending until the marker is written: a read
// right behind EndTxn is answered UNSTABLE_OFFSET_COMMIT most of the time.
func TestKafkaStableOffsetsSeeEveryCommit(t *testing.T) {
	c, topic := real(t)
	c.create(changelog.WantRepartition(topic, 3))
	id := c.topicID(topic)
	p := c.client("p", kgo.TransactionalID(topic))
	parts := []changelog.TopicPartition{tp(topic, 0), tp(topic, 1), tp(topic, 2)}
	got, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), topic, parts, time.Second)
	c.ok(err)
	if len(got) != 3 || got[parts[0]].Found {
		t.Fatalf("a group that never was: %+v", got)
	}
	for i := range int64(50) {
		c.ok(p.BeginTransaction())
		c.stage(p, topic, 0, "a=1")
		m, err := changelog.Metadata{Seq: uint64(i), Writer: 7, W: changelog.NoWatermark}.Text()
		c.ok(err)
		c.txnCommit(p, topic, topic, id, topic, 1, i, m)
		if i == 0 { // pending and without an earlier offset
			_, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), topic, parts, 200*time.Millisecond)
			if ue, ok := errors.AsType[*changelog.UnstableError](err); !ok || !slices.Equal(ue.Partitions, parts[1:2]) {
				t.Fatalf("pending commit: %v", err)
			}
		}
		c.ok(p.EndTransaction(c.ctx, kgo.TryCommit))
		got, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), topic, parts, 10*time.Second)
		c.ok(err)
		if g := got[parts[1]]; !g.Found || g.Offset != i || g.Metadata != m || got[parts[0]].Found || got[parts[2]].Found {
			t.Fatalf("commit %d: %+v", i, got)
		}
	}
}

func TestKafkaFence(t *testing.T) {
	c, topic := real(t)
	c.create(changelog.WantRepartition(topic, 2))
	n, err := changelog.NewNames(topic, 0)
	c.ok(err)
	var ids []string
	for i := range 16 {
		id := n.TransactionalID("5f", i)
		p := c.client(id, kgo.TransactionalID(id), kgo.TransactionTimeout(time.Minute))
		c.ok(p.BeginTransaction())
		c.stage(p, topic, int32(i%2), "a=1")
		ids = append(ids, id)
	}
	parts := []changelog.TopicPartition{tp(topic, 0), tp(topic, 1)}
	open, err := changelog.OpenTransactions(c.ctx, c.admin, parts)
	c.ok(err)
	listed, err := changelog.ListTransactions(c.ctx, c.admin, n)
	c.ok(err)
	if len(open) != 16 || len(listed) != 16 {
		t.Fatalf("%d open, %d listed", len(open), len(listed))
	}
	before := time.Now()
	c.ok(changelog.Fence(c.ctx, c.admin, clock.Real(), ids, 10*time.Second))
	t.Logf("16 ids in %v", time.Since(before))
	if open, err = changelog.OpenTransactions(c.ctx, c.admin, parts); err != nil {
		t.Fatal(err)
	}
	// The markers may come a moment behind the answers.
	for deadline := time.Now().Add(5 * time.Second); len(open) > 0 && time.Now().Before(deadline); {
		open, err = changelog.OpenTransactions(c.ctx, c.admin, parts)
		c.ok(err)
	}
	if len(open) > 0 {
		t.Errorf("open after fencing: %+v", open)
	}
	c.expect(c.reader(), topic, 0)
}

func TestKafkaReadTopicGone(t *testing.T) {
	c, topic := real(t)
	c.create(changelog.WantChangelog(topic, 1))
	id := c.topicID(topic)
	r := c.reader(func(cfg *changelog.ReaderConfig) { cfg.Patience = 300 * time.Millisecond })
	p := changelog.Partition{Topic: topic, TopicID: id}
	if _, _, err := c.read(r, p); err != nil {
		t.Fatal(err)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	del.Topics = append(del.Topics, rt)
	_, err := c.admin.Request(c.ctx, del)
	c.ok(err)
	if _, _, err := c.read(r, p); !errors.Is(err, changelog.ErrTopicGone) {
		t.Errorf("deleted: %v", err)
	}
	c.create(changelog.WantChangelog(topic, 1))
	r = c.reader()
	if _, _, err := c.read(r, p); !errors.Is(err, changelog.ErrTopicGone) {
		t.Errorf("replaced: %v", err)
	}
}

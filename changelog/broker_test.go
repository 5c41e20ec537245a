package changelog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/embedded"
)

func tp(topic string, partition int32) changelog.TopicPartition {
	return changelog.TopicPartition{Topic: topic, Partition: partition}
}

func TestListBounds(t *testing.T) {
	inCluster(t, embedded.Options{Brokers: 3}, func(c *cluster) {
		c.topic("log", 4, nil)
		p := c.client("p", kgo.TransactionalID("p"))
		c.put(c.admin, "log", 0, "a=1", "a=2", "a=3")
		c.ok(c.broker.Cluster().DeleteRecords("log", 0, 1))
		c.transact(p, true, "log", 1, "a=1")
		c.ok(p.BeginTransaction())
		c.stage(p, "log", 0, "b=1", "b=2")
		c.stage(p, "log", 2, "b=1")
		parts := []changelog.TopicPartition{tp("log", 0), tp("log", 1), tp("log", 2), tp("log", 3)}
		want := map[changelog.TopicPartition]changelog.Bounds{
			parts[0]: {Start: 1, LastStable: 3, HighWatermark: 5},
			parts[1]: {LastStable: 2, HighWatermark: 2},
			parts[2]: {LastStable: 0, HighWatermark: 1},
			parts[3]: {},
		}
		for range 3 { // also after the leaders have moved
			got, err := changelog.ListBounds(c.ctx, c.admin, parts)
			c.ok(err)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			c.broker.Cluster().ShufflePartitionLeaders()
		}
		for _, missing := range []changelog.TopicPartition{tp("none", 0), tp("log", 9)} {
			if _, err := changelog.ListBounds(c.ctx, c.admin, []changelog.TopicPartition{parts[0], missing}); !errors.Is(err, changelog.ErrTopicGone) {
				t.Errorf("%v: %v", missing, err)
			}
		}
		c.ok(p.EndTransaction(c.ctx, kgo.TryAbort))
	})
}

// txnCommit sends offsets of a group in the open transaction of a producer. Nobody is a
// member, which no broker checks.
func (c *cluster) txnCommit(p *kgo.Client, id, group string, topicID [16]byte, topic string, partition int32, offset int64, metadata string) {
	c.Helper()
	pid, epoch, err := p.ProducerID(c.ctx)
	c.ok(err)
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = id, group, pid, epoch
	req.Generation = -1
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = topic, topicID
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset, rp.Metadata, rp.LeaderEpoch = partition, offset, &metadata, 3
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(c.ctx, p)
	c.ok(err)
	c.ok(kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

func (c *cluster) topicID(topic string) [16]byte {
	c.Helper()
	have, err := changelog.DescribeTopics(c.ctx, c.admin, []string{topic}, false)
	c.ok(err)
	return have[0].ID
}

func TestStableOffsets(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("in", 4, nil)
		c.topic("out", 1, nil)
		id := c.topicID("in")
		p := c.client("p", kgo.TransactionalID("p"))
		offsets := func(wait time.Duration, parts ...changelog.TopicPartition) (map[changelog.TopicPartition]changelog.Committed, error) {
			return changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", parts, wait)
		}
		// A group that does not exist has committed nothing.
		got, err := offsets(time.Second, tp("in", 0))
		c.ok(err)
		if d := cmp.Diff(map[changelog.TopicPartition]changelog.Committed{tp("in", 0): {Offset: -1, Epoch: -1}}, got); d != "" {
			t.Error(d)
		}
		begin := func(partition int32, offset int64, metadata string) {
			c.ok(p.BeginTransaction())
			c.stage(p, "out", 0, "a=1")
			c.txnCommit(p, "p", "g", id, "in", partition, offset, metadata)
		}
		begin(0, 7, "tm1 1 z - -")
		c.ok(p.EndTransaction(c.ctx, kgo.TryCommit))
		begin(1, 9, "")
		before := time.Now()
		_, err = offsets(3*time.Second, tp("in", 0), tp("in", 1), tp("in", 2))
		ue, ok := errors.AsType[*changelog.UnstableError](err)
		if took := time.Since(before); !ok || !errors.Is(err, changelog.ErrUnstable) || !slices.Contains(ue.Partitions, tp("in", 1)) || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		time.AfterFunc(5*time.Second, func() { _ = p.EndTransaction(c.ctx, kgo.TryCommit) })
		before = time.Now()
		got, err = offsets(time.Minute, tp("in", 0), tp("in", 1), tp("in", 2))
		c.ok(err)
		if took := time.Since(before); took > 5100*time.Millisecond {
			t.Errorf("heard of the commit after %v", took)
		}
		want := map[changelog.TopicPartition]changelog.Committed{
			tp("in", 0): {Found: true, Offset: 7, Epoch: 3, Metadata: "tm1 1 z - -"},
			tp("in", 1): {Found: true, Offset: 9, Epoch: 3},
			tp("in", 2): {Offset: -1, Epoch: -1},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if _, err := offsets(time.Second, tp("in", 0), tp("none", 0)); !errors.Is(err, changelog.ErrTopicGone) {
			t.Errorf("unknown topic: %v", err)
		}
	})
}

// A real broker answers partition by partition, and names one that has only a pending
// commit only when it is asked for by name.
func TestStableOffsetsByPartition(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("in", 3, nil)
		parts := []changelog.TopicPartition{tp("in", 0), tp("in", 1), tp("in", 2)}
		pending := 10
		var asked [][]int32
		c.broker.Cluster().ControlKey(int16(kmsg.OffsetFetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			c.broker.Cluster().KeepControl()
			req := kreq.(*kmsg.OffsetFetchRequest)
			resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
			g := kmsg.NewOffsetFetchResponseGroup()
			g.Group = req.Groups[0].Group
			if !req.RequireStable || len(req.Groups[0].Topics) != 1 {
				t.Errorf("request %+v", req)
			}
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = req.Groups[0].Topics[0].Topic, req.Groups[0].Topics[0].TopicID
			asked = append(asked, req.Groups[0].Topics[0].Partitions)
			for _, p := range req.Groups[0].Topics[0].Partitions {
				rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
				rp.Partition, rp.Offset = p, int64(p)*10
				switch {
				case p == 2:
					rp.Offset = -1
				case p == 1 && pending > 0:
					pending--
					rp.Offset, rp.ErrorCode = -1, kerr.UnstableOffsetCommit.Code
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			g.Topics = append(g.Topics, rt)
			resp.Groups = append(resp.Groups, g)
			return resp, nil, true
		})
		before := time.Now()
		got, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", parts, time.Second)
		c.ok(err)
		if !got[parts[0]].Found || got[parts[1]].Offset != 10 || got[parts[2]].Found {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(before); took > 60*time.Millisecond || len(asked) != 11 || len(asked[0]) != 3 || !slices.Equal(asked[10], []int32{1}) {
			t.Errorf("asked for %v in %v", asked, took)
		}
		pending = 1 << 30
		_, err = changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", parts, time.Second)
		if ue, ok := errors.AsType[*changelog.UnstableError](err); !ok || !slices.Equal(ue.Partitions, parts[1:2]) {
			t.Errorf("never stable: %v", err)
		}
	})
}

func TestStableOffsetsWaitsForTheCoordinator(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("in", 1, nil)
		handle := c.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: 5})
		got, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", []changelog.TopicPartition{tp("in", 0)}, time.Minute)
		c.ok(err)
		if len(got) != 1 || handle.Hits() == 0 {
			t.Errorf("%v after %d faults", got, handle.Hits())
		}
		c.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		if _, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", []changelog.TopicPartition{tp("in", 0)}, time.Minute); !errors.Is(err, kerr.GroupAuthorizationFailed) {
			t.Errorf("refused: %v", err)
		}
	})
}

// A topic that was made anew has offsets under its new id, which the client must ask for.
func TestStableOffsetsOfAReplacedTopic(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		parts := []changelog.TopicPartition{tp("in", 0)}
		for range 2 {
			c.topic("in", 1, nil)
			if _, err := changelog.StableOffsets(c.ctx, c.admin, clock.Real(), "g", parts, time.Second); err != nil {
				t.Error(err)
			}
			c.ok(c.broker.Cluster().DeleteTopic("in"))
		}
	})
}

func TestFenceAndOpenTransactions(t *testing.T) {
	for _, version := range []int{1, 2} {
		inCluster(t, embedded.Options{TransactionVersion: version}, func(c *cluster) {
			c.topic("out", 2, nil)
			names, err := changelog.NewNames("app", 0)
			c.ok(err)
			if v, err := changelog.TransactionVersion(c.ctx, c.admin); err != nil || (v >= 2) != (version == 2) {
				t.Fatalf("transaction.version %d, %v", v, err)
			}
			var ids []string
			var producers []*kgo.Client
			for i := range 3 {
				id := names.TransactionalID("5f", i)
				p := c.client(id, kgo.TransactionalID(id))
				c.ok(p.BeginTransaction())
				c.stage(p, "out", int32(i%2), "a=1")
				ids, producers = append(ids, id), append(producers, p)
			}
			other := c.client("other", kgo.TransactionalID("app-b-5f-0"))
			c.transact(other, true, "out", 0, "x=1")
			parts := []changelog.TopicPartition{tp("out", 0), tp("out", 1)}
			open, err := changelog.OpenTransactions(c.ctx, c.admin, parts)
			c.ok(err)
			var got []string
			for _, o := range open {
				got = append(got, fmt.Sprintf("%v at %d", o.TopicPartition, o.Start))
			}
			if d := cmp.Diff([]string{"out/0 at 0", "out/0 at 1", "out/1 at 0"}, got); d != "" {
				t.Error(d)
			}
			listed, err := changelog.ListTransactions(c.ctx, c.admin, names)
			c.ok(err)
			got = nil
			for _, l := range listed {
				got = append(got, l.ID+" "+l.State)
			}
			if d := cmp.Diff([]string{ids[0] + " Ongoing", ids[1] + " Ongoing", ids[2] + " Ongoing"}, got); d != "" {
				t.Error(d)
			}
			// The coordinator says no the first time, as a real one does while it aborts.
			handle := c.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: 3})
			c.ok(changelog.Fence(c.ctx, c.admin, clock.Real(), append(ids, "app-5f-never"), 10*time.Second))
			if handle.Hits() != 3 {
				t.Errorf("%d refusals", handle.Hits())
			}
			open, err = changelog.OpenTransactions(c.ctx, c.admin, parts)
			c.ok(err)
			if len(open) > 0 {
				t.Errorf("open after fencing: %+v", open)
			}
			for _, b := range []changelog.Bounds{c.bounds("out", 0), c.bounds("out", 1)} {
				if b.LastStable != b.HighWatermark {
					t.Errorf("bounds %+v", b)
				}
			}
			if err := producers[0].EndTransaction(c.ctx, kgo.TryCommit); err == nil {
				t.Error("a fenced producer has committed")
			}
			producersLeft, err := changelog.DescribeProducers(c.ctx, c.admin, parts)
			c.ok(err)
			for _, p := range producersLeft {
				if p.TxnStart >= 0 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

func TestFenceIsBounded(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: -1})
		before := time.Now()
		err := changelog.Fence(c.ctx, c.admin, clock.Real(), []string{"app-5f-0", "app-5f-1"}, 3*time.Second)
		if took := time.Since(before); !errors.Is(err, kerr.ConcurrentTransactions) || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		for _, id := range []string{"app-5f-0", "app-5f-1"} {
			if !strings.Contains(err.Error(), id) {
				t.Errorf("%q is missing in %v", id, err)
			}
		}
	})
}

// R-PURGE-COMMITTED
func TestPurgeKeepsWhatIsNotCommittedAndTheLastBatch(t *testing.T) {
	inCluster(t, embedded.Options{Brokers: 2}, func(c *cluster) {
		c.topic("rep", 4, nil)
		for p := range int32(3) {
			for i := range 100 {
				c.put(c.admin, "rep", p, fmt.Sprintf("k=%d", i))
			}
		}
		committed := map[changelog.TopicPartition]int64{tp("rep", 0): 60, tp("rep", 1): 100, tp("rep", 2): 0, tp("rep", 3): 0}
		left, err := changelog.Purge(c.ctx, c.admin, committed)
		c.ok(err)
		if d := cmp.Diff(map[changelog.TopicPartition]int64{tp("rep", 0): 60, tp("rep", 1): 99}, left); d != "" {
			t.Error(d)
		}
		if b := c.bounds("rep", 0); b.Start != 60 || b.HighWatermark != 100 {
			t.Errorf("bounds %+v", b)
		}
		// Once more there is nothing to do, and lower offsets do no harm.
		committed[tp("rep", 0)] = 30
		left, err = changelog.Purge(c.ctx, c.admin, committed)
		if err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestCreateDescribeVerify(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		want := []changelog.Want{
			changelog.WantRepartition("app-x-repartition", 3), changelog.WantChangelog("app-x-changelog", 3),
			changelog.WantProgress("app-x-progress", 3), changelog.WantControl("app-control"), changelog.WantDeadLetter("app-dead-letter", 2),
		}
		var topics []string
		for _, w := range want {
			topics = append(topics, w.Topic)
		}
		have, err := changelog.DescribeTopics(c.ctx, c.admin, topics, true)
		c.ok(err)
		missing, bad := changelog.Verify(want, have)
		if len(missing) != len(want) || len(bad) > 0 {
			t.Fatalf("missing %v, bad %v", missing, bad)
		}
		c.ok(changelog.CreateTopics(c.ctx, c.admin, missing))
		c.ok(changelog.CreateTopics(c.ctx, c.admin, missing)) // another instance was faster
		have, err = changelog.DescribeTopics(c.ctx, c.admin, topics, true)
		c.ok(err)
		if missing, bad = changelog.Verify(want, have); len(missing)+len(bad) > 0 {
			t.Errorf("missing %v, bad %v", missing, bad)
		}
		// R-COUNT-MISMATCH
		want[1] = changelog.WantChangelog("app-x-changelog", 8)
		if _, bad = changelog.Verify(want, have); len(bad) != 1 || bad[0].Topic != "app-x-changelog" || bad[0].Have != "3" || bad[0].Want != "8" {
			t.Errorf("bad %v", bad)
		}
		c.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "no", Err: kerr.TopicAuthorizationFailed})
		err = changelog.CreateTopics(c.ctx, c.admin, []changelog.Want{changelog.WantChangelog("no", 1), changelog.WantChangelog("yes", 1)})
		if !errors.Is(err, kerr.TopicAuthorizationFailed) || !strings.Contains(err.Error(), `"no"`) || strings.Contains(err.Error(), `"yes"`) {
			t.Errorf("refused: %v", err)
		}
	})
}

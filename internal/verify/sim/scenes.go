package sim

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
)

// A Scene is a directed simulation: an order of events that random faults hardly ever hit.
type Scene struct {
	Name   string
	What   string
	Script func(*World)
}

// Scenes returns all of them.
func Scenes() []Scene {
	return []Scene{
		{"refused-produce", "the broker refuses one batch of a transaction for good", refusedProduce},
		{"bound", "a commit stays pending for longer than the bound", bound},
		{"lost-apply", "the lease is lost while a transaction has an unknown outcome, and it was aborted", lostApply},
		{"unknown-zombie", "an outcome is unknown, and another owner has made the commit of the same number", unknownZombie},
		{"purged-zombie", "what an instance without its group rewinds to is purged, and nobody tells it the group's offsets", purgedZombie},
		{"rejoined", "the group drops an instance that is joining, which then joins under another member id with all it had", rejoined},
		{"stale-coordinator", "a commit whose outcome is unknown was made, and the coordinator shows the offsets of the one before", staleCoordinator},
		{"stale-flush", "a flush ends when the instance is a member again, but of others' partitions", staleAt(engine.K4)},
		{"stale-lease", "the partition is lost between the two looks of step 4", staleAt(engine.K4b)},
		{"lost-callback", "offsets are sent while the client's group metadata is empty", lostCallback},
		{"hanging-takeover", "a take-over begins while the commit of the former owner is on its way", hangingTakeover},
		{"aborted", "a transaction is refused after its flush", abortedOnce},
		{"pipelined", "a transaction is refused late, with the next one well under way", pipelined},
		{"lost-request", "EndTxn does not arrive", lostEnd(embedded.Verdict{CutRequest: true})},
		{"lost-answer", "EndTxn arrives, its answer does not", lostEnd(embedded.Verdict{CutReply: true})},
		{"handover", "an instance dies with its disk, another one restores everything", handover},
		{"lost-marker", "the broker has forgotten a marker", lostMarker},
	}
}

// SceneSettings are those of every scene.
func SceneSettings() Settings {
	return Settings{Seed: 1, Workers: 1, Keys: 5, Commit: 50 * time.Millisecond, RetryTimeout: 300 * time.Millisecond,
		ViewBytes: 1 << 20, LayerBytes: 1 << 20}
}

// start starts an instance.
func (w *World) start(name string, at func(*Node, engine.Point)) *Node {
	n, err := w.Start(name, at)
	if err != nil {
		w.fail("%v", err)
	}
	return n
}

// warm produces and lets the instances commit.
func (w *World) warm() {
	w.Produce(60)
	w.Sleep(time.Second)
}

func refusedProduce(w *World) {
	w.start("a", nil)
	w.warm()
	topics := append([]string{App + "-tally-changelog", App + "-sums-changelog", App + "-legs-repartition"}, w.topics.Outputs()...)
	for _, t := range topics {
		w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: t, Err: kerr.PolicyViolation, When: transactional})
		w.Produce(60)
		w.Sleep(time.Second)
	}
}

// disturbOf disturbs requests of one kind from one client, as long as the switch is on.
func (w *World) disturbOf(client string, key kmsg.Key, v embedded.Verdict) *atomic.Bool {
	on := new(atomic.Bool)
	on.Store(true)
	w.Judge(func(r embedded.Request) embedded.Verdict {
		if on.Load() && r.Client == client && r.Key == key.Int16() {
			return v
		}
		return embedded.Verdict{}
	})
	return on
}

func bound(w *World) {
	a := w.start("a", nil)
	w.warm()
	h := w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Topic: w.topics.SumIn, Err: kerr.UnstableOffsetCommit, Count: -1})
	on := w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{CutReply: true})
	w.Produce(60)
	w.Sleep(2 * time.Second)
	on.Store(false)
	w.Sleep(35 * time.Second)
	h.Remove()
	w.Produce(30)
}

func lostApply(w *World) {
	a := w.start("a", nil)
	w.warm()
	on := w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{CutRequest: true})
	w.Produce(60)
	w.Sleep(100 * time.Millisecond)
	// The producers are initialised anew, and the look at the offsets waits until the lease is gone.
	h := w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ConcurrentTransactions, Count: -1})
	a.FreezeGroup(2 * Session)
	w.Sleep(2*Session + 500*time.Millisecond)
	on.Store(false)
	h.Remove()
	w.Sleep(2 * time.Second)
	a.Stop()
	w.snapshot(a.client, a.disk)
	w.start("b", nil)
}

// unknownZombie makes a a member that does not know of its death, lets its EndTxn vanish, lets b take over and
// commit more input under the same number, and only then lets a ask what became of its transaction.
func unknownZombie(w *World) {
	var hold atomic.Bool
	a := w.start("a", func(n *Node, p engine.Point) {
		for p == engine.K6 && hold.Load() {
			time.Sleep(10 * time.Millisecond)
		}
	})
	w.warm()
	w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{CutRequest: true})
	a.FreezeGroup(3 * Session)
	hold.Store(true)
	w.Produce(20)
	w.Sleep(500 * time.Millisecond)
	w.Produce(40)
	w.start("b", nil)
	w.Sleep(2 * Session)
	w.Judge(nil)
	hold.Store(false)
	// Long enough for what a has applied to reach its disk, not long enough for it to hear of b.
	w.Sleep(1400 * time.Millisecond)
	a.Crash(true)
	w.Produce(20)
}

// purgedZombie cuts a off from its group while b takes over and has what it reads purged. The commits of a are refused, it
// rewinds to what is no longer there, and a coordinator that does not answer it keeps the reason to itself.
func purgedZombie(w *World) {
	a := w.start("a", nil)
	w.warm()
	on := w.disturbOf(a.client, kmsg.OffsetFetch, embedded.Verdict{CutRequest: true})
	a.FreezeGroup(4 * Session)
	w.start("b", nil)
	w.Sleep(2 * Session)
	for range 4 {
		w.Produce(30)
		w.Sleep(700 * time.Millisecond)
	}
	on.Store(false)
	w.Sleep(3 * Session)
}

// rejoined holds back the JoinGroup of a for so long that the group drops it and b commits its partitions. The answer makes
// a join anew, as a new member, and until the assignment comes it goes on with the partitions it had.
func rejoined(w *World) {
	a := w.start("a", nil)
	w.warm()
	var hold atomic.Bool
	hold.Store(true)
	w.Judge(func(r embedded.Request) embedded.Verdict {
		switch {
		case !hold.Load() || r.Client != a.Group():
		case r.Key == kmsg.JoinGroup.Int16():
			hold.Store(false)
			return embedded.Verdict{Delay: 3 * Session}
		}
		if r.Client == a.Group() && r.Key == kmsg.SyncGroup.Int16() {
			return embedded.Verdict{Delay: Session / 4}
		}
		return embedded.Verdict{}
	})
	w.start("b", nil)
	for range 16 {
		w.Produce(15)
		w.Sleep(Session / 4)
	}
	w.Judge(nil)
	w.Produce(30)
}

// staleCoordinator loses the answer to a commit and has the coordinator show the offsets of before: first to the instance
// that asks what became of it, then to one that takes the tasks over.
func staleCoordinator(w *World) {
	a := w.start("a", nil)
	w.warm()
	stale := w.rewindOffsets()
	on := w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{CutReply: true})
	w.Produce(60)
	w.Sleep(2 * time.Second)
	on.Store(false)
	w.Sleep(2 * time.Second)
	a.Crash(false)
	w.start("b", nil)
	w.Sleep(3 * Session)
	stale.Store(false)
	w.Produce(30)
}

// rewindOffsets has the coordinator answer with the group's offsets of now, as long as the switch is on.
func (w *World) rewindOffsets() *atomic.Bool {
	then := w.broker.Cluster().GroupInfo(App).Commits
	names := make(map[[16]byte]string)
	for topic := range then {
		names[w.broker.Cluster().TopicInfo(topic).TopicID] = topic
	}
	on := new(atomic.Bool)
	on.Store(true)
	w.broker.Cluster().ControlKey(kmsg.OffsetFetch.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		w.broker.Cluster().KeepControl()
		req := kreq.(*kmsg.OffsetFetchRequest)
		if !on.Load() || len(req.Groups) != 1 || req.Groups[0].Group != App {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		g := kmsg.NewOffsetFetchResponseGroup()
		g.Group = App
		for _, t := range req.Groups[0].Topics {
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			topic := t.Topic
			if topic == "" {
				topic = names[t.TopicID]
			}
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
				rp.Partition, rp.Offset = p, -1
				if o, ok := then[topic][p]; ok {
					rp.Offset, rp.Metadata = o.Offset, kmsg.StringPtr(o.Metadata)
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			g.Topics = append(g.Topics, rt)
		}
		resp.Groups = append(resp.Groups, g)
		return resp, nil, true
	})
	return on
}

// staleAt makes a a member that does not know of its death, and b its heir. a then stands at the point of a
// transaction until it has joined again: the generation is good, the partitions are b's.
func staleAt(point engine.Point) func(*World) {
	return func(w *World) {
		var hold atomic.Bool
		var held atomic.Int64
		a := w.start("a", func(n *Node, p engine.Point) {
			if p == point && hold.Load() {
				held.Add(1)
				for hold.Load() {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
		w.warm()
		a.FreezeGroup(7 * Session / 4)
		w.Sleep(Session / 4)
		w.start("b", nil)
		w.Sleep(5 * Session / 4)
		hold.Store(true)
		w.Produce(30)
		w.Await("a at the point", Session/2, func() bool { return held.Load() > 0 })
		w.Sleep(5 * Session / 8)
		hold.Store(false)
		w.Sleep(time.Second)
		w.Produce(30)
	}
}

// lostCallback has a flush end while a stands in its lost callback: its group metadata is empty by then, and its
// leases are still held.
func lostCallback(w *World) {
	var hold, lost atomic.Bool
	a := w.start("a", func(n *Node, p engine.Point) {
		switch {
		case n.Name != "a":
		case p == engine.K17c:
			w.note("a is in its lost callback")
			lost.Store(true)
			time.Sleep(Session / 2)
		case p == engine.K4 && hold.Load():
			for !lost.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			hold.Store(false)
		}
	})
	w.warm()
	a.FreezeGroup(7 * Session / 4)
	w.Sleep(Session / 4)
	w.start("b", nil)
	w.Sleep(5 * Session / 4)
	hold.Store(true)
	w.Produce(30)
	w.Sleep(2 * Session)
	w.Produce(30)
}

// pipelined has transactions refused after so long that the next generation has output of its own.
func pipelined(w *World) {
	a := w.start("a", nil)
	w.warm()
	w.disturbOf(a.client, kmsg.TxnOffsetCommit, embedded.Verdict{ReplyDelay: 250 * time.Millisecond})
	h := w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: w.topics.SeqIn, Err: kerr.OffsetMetadataTooLarge, Count: 2})
	for range 10 {
		w.Produce(30)
		w.Sleep(70 * time.Millisecond)
	}
	h.Remove()
	w.Judge(nil)
	w.Produce(30)
}

// lostEnd disturbs EndTxn until the client has given it up.
func lostEnd(v embedded.Verdict) func(*World) {
	return func(w *World) {
		a := w.start("a", nil)
		w.warm()
		on := w.disturbOf(a.client, kmsg.EndTxn, v)
		w.Produce(60)
		w.Sleep(time.Second)
		on.Store(false)
		w.Produce(60)
		w.Sleep(2 * time.Second)
		a.Crash(true)
		w.start("a", nil)
		w.Produce(30)
	}
}

// handover lets every key have several values in the changelogs before they are read.
func handover(w *World) {
	a := w.start("a", nil)
	for range 5 {
		w.warm()
	}
	a.Crash(false)
	w.start("b", nil)
	w.warm()
}

// abortedOnce has a transaction refused after its flush, and looks at the disk.
func abortedOnce(w *World) {
	a := w.start("a", nil)
	w.warm()
	h := w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: w.topics.SeqIn, Err: kerr.OffsetMetadataTooLarge, Count: -1})
	w.Produce(60)
	w.Sleep(2 * time.Second)
	h.Remove()
	a.Crash(true)
	w.start("b", nil)
}

// hangingTakeover moves tasks from a to b while the EndTxn of a is on its way: its records are in the logs, its
// offsets pending.
func hangingTakeover(w *World) {
	a := w.start("a", nil)
	w.warm()
	on := w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{Delay: 2500 * time.Millisecond})
	w.Produce(60)
	w.Sleep(60 * time.Millisecond)
	w.start("b", nil)
	w.Sleep(1200 * time.Millisecond)
	on.Store(false)
	w.Sleep(2 * time.Second)
	w.Produce(60)
	w.Sleep(time.Second)
}

// lostMarker shows, after a re-initialisation, an open transaction of the producer itself on everything it
// writes. Until that is gone nothing may be committed.
func lostMarker(w *World) {
	a := w.start("a", nil)
	w.warm()
	var ids []int64
	for id := range w.producers() {
		ids = append(ids, id)
	}
	var open atomic.Bool
	open.Store(true)
	var asked atomic.Int64
	w.broker.Cluster().ControlKey(kmsg.DescribeProducers.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		w.broker.Cluster().KeepControl()
		if !open.Load() {
			return nil, nil, false
		}
		asked.Add(1)
		req := kreq.(*kmsg.DescribeProducersRequest)
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewDescribeProducersResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewDescribeProducersResponseTopicPartition()
				rp.Partition = p
				for _, id := range ids {
					ap := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
					ap.ProducerID, ap.CurrentTxnStartOffset = id, 1
					rp.ActiveProducers = append(rp.ActiveProducers, ap)
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	on := w.disturbOf(a.client, kmsg.EndTxn, embedded.Verdict{CutRequest: true})
	w.Produce(30)
	w.Sleep(time.Second)
	on.Store(false)
	w.Sleep(time.Second)
	before := w.commits()
	w.Produce(30)
	w.Sleep(3 * time.Second)
	if after := w.commits(); after != before {
		w.fail("committed with a transaction of its own still open: offsets %d, then %d", before, after)
	}
	open.Store(false)
	w.Sleep(3 * time.Second)
}

// commits returns the sum of the group's offsets.
func (w *World) commits() int64 {
	var n int64
	if g := w.broker.Cluster().GroupInfo(App); g != nil {
		for _, parts := range g.Commits {
			for _, c := range parts {
				n += c.Offset
			}
		}
	}
	return n
}

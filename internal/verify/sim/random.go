package sim

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
)

// Draw returns the settings of a seed.
func Draw(seed uint64) Settings {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := Settings{
		Seed: seed, Pebble: rng.IntN(5) == 0, TV1: rng.IntN(6) == 0, Workers: 1 + rng.IntN(2), Keys: 3 + rng.IntN(12),
		Commit: 50 * time.Millisecond, RetryTimeout: 5 * time.Second, ViewBytes: 1 << 20, LayerBytes: 1 << 20,
	}
	if rng.IntN(2) == 0 {
		s.RetryTimeout = 300 * time.Millisecond
	}
	if rng.IntN(3) == 0 {
		s.ViewBytes = 1 // every clean row leaves at once
	}
	if rng.IntN(2) == 0 {
		s.LayerBytes = 2000
	}
	if rng.IntN(4) == 0 {
		s.Overlay = 3000
	}
	if rng.IntN(4) == 0 {
		s.Pebble = true // what is copied are files
		s.Copies = Copies{
			Interval: time.Duration(100+rng.IntN(1400)) * time.Millisecond, Grace: time.Duration(2000+rng.IntN(8000)) * time.Millisecond,
			Keep: 1 + rng.IntN(3), Restore: engine.RestoreMode(rng.IntN(3)), Rate: 1e12, // a snapshot is always worth it
		}
		if rng.IntN(4) == 0 {
			s.Copies.Rate = 1e8 // for changelogs this short it often is not
		}
	}
	return s
}

// points is where an instance may be stalled or crashed.
var points = [...]engine.Point{engine.K0, engine.K1, engine.K2, engine.K3, engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7,
	engine.K8, engine.K9, engine.K17, engine.K17b, engine.K17c}

// copyPoints are those of snapshots and of restores.
var copyPoints = [...]engine.Point{engine.K10, engine.K11, engine.K12, engine.K13, engine.K14, engine.K15}

// Random is the script of a seed: inputs in portions, and before each portion perhaps a fault.
func (w *World) Random() {
	rng := w.rng
	names := []string{"a", "b", "c"}
	var faults []*kfake.FaultHandle
	w.startOne(names[0])
	if rng.IntN(2) == 0 {
		w.startOne(names[1])
	}
	w.Produce(30)
	portions := 4 + rng.IntN(6)
	if w.bucket != nil {
		portions *= 2
	}
	for range portions {
		if h := w.fault(names); h != nil {
			faults = append(faults, h)
		}
		for range 1 + rng.IntN(4) {
			w.Produce(5 + rng.IntN(40))
			w.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			if w.bucket != nil {
				w.Sleep(time.Duration(rng.IntN(700)) * time.Millisecond)
			}
		}
	}
	// From here on nothing fails any more. The plans of instances end as well: a crash after the look at who is
	// alive would leave the inputs to nobody.
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	for _, h := range faults {
		h.Remove()
	}
	w.Judge(nil)
	w.timers.Wait()
	// A start may still fail for what was done to it before.
	for _, n := range w.Alive() {
		w.Await(n.client+" has started or failed to", time.Minute, func() bool { return n.joined.Load() || n.ended() })
	}
	if len(w.Alive()) == 0 || rng.IntN(3) == 0 {
		w.startOne(w.freeName(names))
	}
	w.Produce(20)
	w.settleCopies()
}

func (w *World) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

func (w *World) freeName(names []string) string {
	for _, n := range names {
		free := true
		for _, a := range w.Alive() {
			free = free && a.Name != n
		}
		if free {
			return n
		}
	}
	return ""
}

// startOne starts an instance that may have a plan of its own for some point.
func (w *World) startOne(name string) {
	if name == "" {
		return
	}
	rng := w.rng
	var at func(*Node, engine.Point)
	if rng.IntN(2) == 0 {
		var hits atomic.Int64
		point, hit := points[rng.IntN(len(points))], int64(1+rng.IntN(20))
		if w.bucket != nil && rng.IntN(2) == 0 {
			point, hit = copyPoints[rng.IntN(len(copyPoints))], int64(1+rng.IntN(4))
		}
		stall := time.Duration(rng.IntN(int(2*Session/time.Millisecond))) * time.Millisecond
		crash, keep := rng.IntN(2) == 0, rng.IntN(3) > 0
		freeze := rng.IntN(2) == 0
		at = func(n *Node, p engine.Point) {
			if p != point || hits.Add(1) != hit || w.isCalm() {
				return
			}
			w.note("%s is at %s: crash %v, else stall for %v with a freeze %v", n.client, p, crash, stall, freeze)
			if crash {
				n.Crash(keep)
				return
			}
			if freeze {
				for _, c := range n.clients() {
					w.net.Freeze(c, true)
				}
			}
			time.Sleep(stall)
			if freeze {
				for _, c := range n.clients() {
					w.net.Freeze(c, false)
				}
			}
		}
	}
	if _, err := w.Start(name, at); err != nil {
		w.fail("%v", err)
	}
}

// fault does one random thing.
func (w *World) fault(names []string) *kfake.FaultHandle {
	rng := w.rng
	alive := w.Alive()
	if len(alive) == 0 {
		w.startOne(w.freeName(names))
		return nil
	}
	n := alive[rng.IntN(len(alive))]
	pause := time.Duration(rng.IntN(int(5*Session/2/time.Millisecond))) * time.Millisecond
	kinds := 14
	if w.bucket != nil {
		kinds = 22
	}
	switch rng.IntN(kinds) {
	case 0:
		w.note("cut %s", n.client)
		n.Cut()
	case 1:
		n.Freeze(pause)
	case 2:
		n.FreezeGroup(pause)
	case 3:
		n.Crash(rng.IntN(3) > 0)
	case 4:
		n.Stop()
		w.snapshot(n.client, n.disk)
	case 5, 6:
		w.startOne(w.freeName(names))
	case 7:
		// Leaders of partitions stay: with a hint at the new leader in every answer the client asks again at once, and
		// in a bubble no time passes that would end that. internal/engine.TestF3Brokers moves them.
		w.note("coordinators move")
		w.broker.Cluster().RehashCoordinators()
	case 8, 9:
		w.disturb(kmsg.EndTxn, pause)
	case 10:
		w.disturb(kmsg.TxnOffsetCommit, pause)
	case 11:
		w.note("a produce request is refused")
		return w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.anyTopic(), Err: kerr.PolicyViolation,
			When: transactional})
	case 12:
		w.note("a partition of TxnOffsetCommit is refused")
		return w.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: w.topics.Inputs()[rng.IntN(3)],
			Err: kerr.OffsetMetadataTooLarge, Count: 1 + rng.IntN(3)})
	case 13:
		w.disturb(kmsg.Produce, pause)
	case 14, 15:
		n.Crash(false)
		w.startOne(w.freeName(names)) // has to restore
	default:
		w.bucket.trouble(rng)
	}
	return nil
}

func transactional(r kmsg.Request) bool {
	p, ok := r.(*kmsg.ProduceRequest)
	return ok && p.TransactionID != nil
}

func (w *World) anyTopic() string {
	all := append([]string{App + "-tally-changelog", App + "-sums-changelog", App + "-balances-changelog", App + "-legs-repartition"}, w.topics.Outputs()...)
	return all[w.rng.IntN(len(all))]
}

// disturb loses or delays requests of a kind for a while: on their way, or their answers.
func (w *World) disturb(key kmsg.Key, d time.Duration) {
	rng := w.rng
	how, every := rng.IntN(4), 1+rng.IntN(2)
	end := time.Now().Add(d)
	var seen atomic.Int64
	w.note("disturb %s for %v, way %d, every %d", key.Name(), d, how, every)
	delay := time.Duration(rng.IntN(2000)) * time.Millisecond
	w.Judge(func(r embedded.Request) embedded.Verdict {
		if r.Client == "eye" || r.Key != key.Int16() || time.Now().After(end) || seen.Add(1)%int64(every) != 0 {
			return embedded.Verdict{}
		}
		switch how {
		case 0:
			return embedded.Verdict{CutRequest: true}
		case 1:
			return embedded.Verdict{CutReply: true}
		case 2:
			return embedded.Verdict{Delay: delay}
		default:
			return embedded.Verdict{ReplyDelay: delay}
		}
	})
}

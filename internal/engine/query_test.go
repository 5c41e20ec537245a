package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// asked returns the description of a store.
func (n *node) asked(id string) *query.Store {
	n.s.t.Helper()
	for _, s := range n.e.Stores() {
		if s.ID == id {
			return s
		}
	}
	n.s.t.Fatalf("no store %s", id)
	return nil
}

// partitionOf is where feed puts a key.
func partitionOf(k int, parts int32) int32 { return int32(k) % parts }

// get reads the count of a key on an instance.
func (n *node) get(ctx context.Context, k int, w query.Want) (count int64, m query.Meta, err error) {
	s := n.asked("counts")
	v, err := n.e.View(ctx, query.Task{Sub: s.Sub, Partition: partitionOf(k, max(1, s.Partitions))}, w)
	if err != nil {
		return 0, m, err
	}
	defer v.Close()
	row, ok, err := v.Get(s, fmt.Appendf(nil, "k%d", k))
	if err != nil {
		return 0, v.Meta, err
	}
	if ok {
		count = int64(binary.BigEndian.Uint64(row.Value))
	}
	return count, v.Meta, nil
}

// mustGet is get for what must have an answer within a second.
func (n *node) mustGet(k int, w query.Want) (int64, query.Meta) {
	n.s.t.Helper()
	ctx, cancel := context.WithTimeout(n.s.t.Context(), time.Second)
	defer cancel()
	c, m, err := n.get(ctx, k, w)
	if err != nil {
		n.s.t.Fatalf("key k%d on %s: %v", k, n.client, err)
	}
	return c, m
}

// What a transaction has not committed nobody sees, at no point of the commit, and from step 7 on everybody does.
func TestQueryShowsCommits(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.prepare("a", counting(), nil, nil)
		n.run()
		s.feed("in", 0, 10, 1)
		s.caughtUp("in")
		s.await("count 10", func() bool { c, _ := n.mustGet(0, query.Want{}); return c == 10 })
		var mu sync.Mutex
		seen := map[engine.Point]int64{}
		n.onPoint(func(p engine.Point) {
			c, _, err := n.get(t.Context(), 0, query.Want{})
			if err != nil {
				t.Errorf("at %v: %v", p, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if _, ok := seen[p]; !ok {
				seen[p] = c
			}
		})
		s.feed("in", 10, 5, 1)
		s.await("count 15", func() bool { c, _ := n.mustGet(0, query.Want{}); return c == 15 })
		n.onPoint(nil)
		mu.Lock()
		defer mu.Unlock()
		for _, p := range []engine.Point{engine.K4, engine.K4b, engine.K5, engine.K6, engine.K7} {
			if seen[p] != 10 {
				t.Errorf("at %v the count is %d, want that of the last commit, 10", p, seen[p])
			}
		}
	})
}

// Q-POSITION: an answer says what it reflects, and goes on saying it; a question for more waits for it, or is told how far
// the task is.
func TestQPosition(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", counting(), nil, nil)
		n.awaitTasks(1)
		s.feed("in", 0, 10, 1)
		first, m := n.mustGet(0, query.Want{Position: query.Position{{Name: "in", Number: 9}}})
		if at, _ := m.Inputs.Offset("in", 0); first != 10 || at != 9 || m.Position.Commit(m.Task) != m.Seq {
			t.Fatalf("count %d, %+v", first, m)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _, err := n.get(ctx, 0, query.Want{Position: query.Position{{Name: "in", Number: 19}}})
		if !errors.Is(err, &query.Error{Reason: query.PositionNotReached}) {
			t.Errorf("a position that is not there: %v", err)
		}
		answered := make(chan int64)
		go func() {
			c, _ := n.mustGet(0, query.Want{Position: query.Position{{Name: "in", Number: 19}}})
			answered <- c
		}()
		s.feed("in", 10, 10, 1)
		if c := <-answered; c != 20 {
			t.Errorf("the question for offset 19 was answered with %d", c)
		}
		if at, _ := m.Inputs.Offset("in", 0); at != 9 {
			t.Errorf("the first answer now says %d", at)
		}
		for _, p := range []query.Position{{{Name: "out", Number: 1}}, {{Name: "elsewhere", Number: 1}}} {
			_, _, err := n.get(t.Context(), 0, query.Want{Position: p})
			if !errors.Is(err, &query.Error{Reason: query.InvalidRequest}) {
				t.Errorf("position %v: %v", p, err)
			}
		}
		if c, _ := n.mustGet(0, query.Want{Position: query.Position{{Name: "in", Partition: 7, Number: 1000}}}); c != 20 {
			t.Errorf("a position of another partition: %d", c)
		}
	})
}

// A question with a minimum watermark waits for it.
func TestQueryMinWatermark(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		top.Stream[string, string]("in").Timestamps(nil, watermark.OutOfOrderness(0)).
			Window(window.Tumbling(10*time.Second), window.AllowedLateness(time.Hour)).Count("counts").To("out")
		n := s.start("a", top, nil, nil)
		n.awaitTasks(1)
		s.send(rec{topic: "in", key: []byte("k0"), value: []byte("x"), ms: 5000})
		view := func(w query.Want, within time.Duration) (*query.View, error) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return n.e.View(ctx, query.Task{Sub: n.asked("counts").Sub}, w)
		}
		want := query.Want{HasMinWatermark: true, MinWatermark: 11_000}
		if _, err := view(want, time.Second); !errors.Is(err, &query.Error{Reason: query.WatermarkNotReached}) {
			t.Errorf("a watermark that is not there: %v", err)
		}
		go s.send(rec{topic: "in", key: []byte("k1"), value: []byte("x"), ms: 12_500})
		v, err := view(want, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		rows, next, err := v.Read(t.Context(), n.asked("counts"), query.Page{Key: []byte("k0"), Rows: 10, Bytes: 1 << 20})
		if err != nil || next != nil || len(rows) != 1 || rows[0].Start != 0 || rows[0].End != 10_000 || v.Watermark < 11_000 {
			t.Errorf("windows %+v, %v, %v, watermark %d", rows, next, err, v.Watermark)
		}
	})
}

// asker asks for counts as a client does that knows the map of the group, and checks every answer: it is of a commit, what
// this client has seen before is in it, and so is every record it was told of.
type asker struct {
	s     *scene
	nodes func() []*node
	parts int32
	keys  int

	mu      sync.Mutex
	fed     int // records acknowledged
	answers int // all of all clients
	errs    map[query.Reason]int
	max     []int64 // per key: the highest count answered
}

// run asks until the context ends.
func (a *asker) run(ctx context.Context, rng *rand.Rand) {
	t := a.s.t
	token := query.Position(nil)
	last := make([]int64, a.keys)
	for ctx.Err() == nil {
		k := rng.IntN(a.keys)
		a.mu.Lock()
		fed := a.fed
		a.mu.Unlock()
		nodes := a.nodes()
		n := nodes[rng.IntN(len(nodes))]
		for _, m := range nodes { // mostly the one that thinks it has it
			if _, self, ok := m.e.Hosts().Owner(query.Task{Sub: "counts", Partition: partitionOf(k, a.parts)}); ok && self && rng.IntN(4) > 0 {
				n = m
			}
		}
		w := query.Want{Position: token}
		strong := rng.IntN(2) == 0 && fed > a.keys
		if strong {
			// Offsets of a partition are those of the records fed to it, since nobody else writes there.
			w.Position = w.Position.Merge(query.Position{{Name: "in", Partition: partitionOf(k, a.parts), Number: int64(a.perPartition(fed, k)) - 1}})
		}
		ask, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		c, m, err := n.get(ask, k, w)
		cancel()
		if err != nil {
			var e *query.Error
			if !errors.As(err, &e) {
				t.Errorf("key k%d: %v", k, err)
				return
			}
			a.mu.Lock()
			a.errs[e.Reason]++
			a.mu.Unlock()
			a.s.pass(time.Millisecond)
			continue
		}
		if c < last[k] {
			t.Errorf("key k%d went back from %d to %d (commit %d)", k, last[k], c, m.Seq)
		}
		if least := int64(a.perKey(fed, k)); strong && c < least {
			t.Errorf("key k%d is %d, %d records were produced before the question", k, c, least)
		}
		last[k] = c
		token = token.Merge(m.Position)
		a.mu.Lock()
		a.answers++
		a.max[k] = max(a.max[k], c)
		a.mu.Unlock()
		a.s.pass(time.Duration(1+rng.IntN(6)) * time.Millisecond)
	}
}

// perKey is how many of the first n records have that key.
func (a *asker) perKey(n, k int) int { return (n - k + a.keys - 1) / a.keys }

// perPartition is how many of the first n records are in the partition of a key.
func (a *asker) perPartition(n, k int) (sum int) {
	for j := range a.keys {
		if partitionOf(j, a.parts) == partitionOf(k, a.parts) {
			sum += a.perKey(n, j)
		}
	}
	return sum
}

// joined waits until the instance is in the group. The in-process broker never forgets a member whose connection has gone
// while it waited for the answer to its join; a real one gives it the session time-out.
func (n *node) joined() {
	n.s.t.Helper()
	n.s.await(n.client+" in the group", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return slices.Contains(n.phases, "running")
	})
}

// Instances come, go, crash and stand still while clients ask: every answer is of a commit and none goes back; what has no
// answer gets a reason.
func TestQueryMoves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 4, "out": 4}}, func(t *testing.T, s *scene) {
				rng := rand.New(rand.NewPCG(seed, 9))
				var mu sync.Mutex
				live := []*node{s.start("a", counting(), newPebbles(), nil), s.start("b", counting(), newPebbles(), nil)}
				a := &asker{s: s, parts: 4, keys: 20, errs: map[query.Reason]int{}, max: make([]int64, 20), nodes: func() []*node {
					mu.Lock()
					defer mu.Unlock()
					return append([]*node(nil), live...)
				}}
				s.await("tasks", func() bool { return len(live[0].running())+len(live[1].running()) == 4 })
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for i := range uint64(4) {
					r := rand.New(rand.NewPCG(seed, 100+i))
					wg.Go(func() { a.run(ctx, r) })
				}
				fed := 0
				for round := range 10 {
					s.feed("in", fed, 100, 20)
					fed += 100
					a.mu.Lock()
					a.fed = fed
					a.mu.Unlock()
					s.pass(time.Duration(rng.IntN(400)) * time.Millisecond)
					mu.Lock()
					i := rng.IntN(len(live))
					n := live[i]
					mu.Unlock()
					var fresh *node
					switch rng.IntN(4) {
					case 0:
						n.joined()
						n.crash()
						fresh = s.start(n.name, counting(), n.disk, nil)
					case 1:
						n.freeze(true)
						s.pass(2 * session)
						n.freeze(false)
					case 2:
						fresh = s.start(n.name, counting(), n.stop(), nil)
					}
					if fresh != nil {
						mu.Lock()
						live[i] = fresh
						mu.Unlock()
					}
					s.pass(time.Duration(round*20) * time.Millisecond)
				}
				s.counts("out", fed, 20)
				s.await("every key's last count answered", func() bool {
					a.mu.Lock()
					defer a.mu.Unlock()
					for k, c := range a.max {
						if c != int64(a.perKey(fed, k)) {
							return false
						}
					}
					return true
				})
				cancel()
				wg.Wait()
				// Every answer was a count that a committed transaction has put out.
				for k, c := range a.max {
					if c > int64(a.perKey(fed, k)) {
						t.Errorf("key k%d was answered with %d, it was counted %d times", k, c, a.perKey(fed, k))
					}
				}
				if a.answers < 500 {
					t.Errorf("%d answers", a.answers)
				}
				t.Logf("%d answers, without one: %v", a.answers, a.errs)
			})
		})
	}
}

// Q-CLOSE-UNDER-READ: a partition leaves while it is scanned: the scan ends with the reason, and the database is closed
// without waiting for who holds the scan.
func TestQCloseUnderRead(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", counting(), newPebbles(), nil)
		s.feed("in", 0, 2000, 2000)
		s.counts("out", 2000, 2000)
		st := n.asked("counts")
		v, err := n.e.View(t.Context(), query.Task{Sub: st.Sub}, query.Want{})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		rows, next, err := v.Read(t.Context(), st, query.Page{Rows: 200, Bytes: 1 << 20})
		if err != nil || len(rows) != 200 || next == nil {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		n.stop()
		if _, _, err := v.Read(t.Context(), st, query.Page{Rows: 200, Bytes: 1 << 20, After: next}); !errors.Is(err, &query.Error{Reason: query.Moved}) {
			t.Errorf("a scan of a task that has left: %v", err)
		}
		if _, _, err := n.get(t.Context(), 0, query.Want{}); err == nil {
			t.Error("an instance that has stopped answers")
		}
	})
}

// A view that was taken before the task moved gives no answer any more, from whatever it would have been read.
func TestQueryAfterMove(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", counting(), newPebbles(), nil)
		n.awaitTasks(1)
		s.feed("in", 0, 10, 1)
		s.counts("out", 10, 1)
		st := n.asked("counts")
		v, err := n.e.View(t.Context(), query.Task{Sub: st.Sub}, query.Want{})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		n.freeze(true)
		s.pass(dead)
		b := s.start("b", counting(), newPebbles(), nil)
		s.feed("in", 10, 10, 1)
		s.counts("out", 20, 1)
		n.freeze(false)
		s.await("the loss noticed", func() bool { return len(n.running()) == 0 })
		if row, ok, err := v.Get(st, []byte("k0")); !errors.Is(err, &query.Error{Reason: query.Moved}) {
			t.Errorf("a view of a task that has moved: %x, %v, %v", row.Value, ok, err)
		}
		s.await("the former owner names the new one", func() bool {
			_, _, err := n.get(t.Context(), 0, query.Want{})
			var e *query.Error
			if !errors.As(err, &e) || !e.Retry() {
				t.Fatalf("the former owner says: %v", err)
			}
			return e.Reason == query.NotOwner && e.Host.Instance == "b" || len(n.running()) == 1
		})
		if c, _ := b.mustGet(0, query.Want{}); c != 20 {
			t.Errorf("the owner says %d", c)
		}
	})
}

// While a task restores on top of what its directory holds, who asks for it sees that, with its lag; everybody else is told
// to wait. On top of nothing there is nothing to see.
func TestQueryWhileRestoring(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("disk kept=", kept), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				n := s.start("a", counting(), newPebbles(), nil)
				s.feed("in", 0, 100, 10)
				s.counts("out", 100, 10)
				d := n.stop()
				b := s.start("b", counting(), newPebbles(), nil)
				s.feed("in", 100, 5000, 2500)
				s.counts2(5100)
				b.stop()
				if !kept {
					d = newPebbles()
				}
				n = s.prepare("a", counting(), d, nil)
				var during []error
				var count int64
				var m query.Meta
				n.onPoint(func(p engine.Point) {
					if p != engine.K15 || during != nil {
						return
					}
					_, _, err := n.get(t.Context(), 0, query.Want{})
					during = append(during, err)
					count, m, err = n.get(t.Context(), 0, query.Want{Consistency: query.Stale})
					during = append(during, err)
					_, _, err = n.get(t.Context(), 0, query.Want{Consistency: query.Stale, MaxLag: 10})
					during = append(during, err)
				})
				n.run()
				n.awaitTasks(1)
				if len(during) != 3 || !errors.Is(during[0], &query.Error{Reason: query.Restoring}) {
					t.Fatalf("while it restores: %v", during)
				}
				switch {
				case !kept && !errors.Is(during[1], &query.Error{Reason: query.Restoring}):
					t.Errorf("on top of nothing: %d, %v", count, during[1])
				case kept && (during[1] != nil || count != 10 || !m.Stale || m.Lag < 1000 || m.Seq == 0):
					t.Errorf("on top of the directory: %d, %+v, %v", count, m, during[1])
				case kept && !errors.Is(during[2], &query.Error{Reason: query.TooStale}):
					t.Errorf("with a lag that is too large: %v", during[2])
				}
				if c, _ := n.mustGet(0, query.Want{}); c != 12 {
					t.Errorf("the count is %d", c)
				}
			})
		})
	}
}

// counts2 waits for so many records in out.
func (s *scene) counts2(n int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d counts", n), func() bool { return len(s.read("out")) >= n })
}

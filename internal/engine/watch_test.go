package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/query"
)

// mirror is a client that keeps a copy of a partition's rows by watching it, wherever the task is.
type mirror struct {
	s     *scene
	nodes func() []*node
	task  query.Task
	in    query.Range
	rng   *rand.Rand

	mu       sync.Mutex
	rows     map[string]int64
	complete bool
	seq      uint64
	resets   int
	told     int
}

// run watches until the context ends. It breaks off now and then, and comes back with the commit it has seen.
func (m *mirror) run(ctx context.Context) {
	for ctx.Err() == nil {
		nodes := m.nodes()
		n := nodes[m.rng.IntN(len(nodes))]
		st := n.asked("counts")
		if st.Partitions == 0 {
			m.s.pass(time.Millisecond)
			continue
		}
		w, err := n.e.Watch(ctx, m.task, query.WatchSpec{Store: st, Range: m.in, From: m.from()})
		if err != nil {
			m.s.pass(5 * time.Millisecond)
			continue
		}
		m.follow(ctx, w, m.rng.IntN(6))
		w.Close()
	}
}

func (m *mirror) from() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.complete {
		return 0
	}
	return m.seq
}

func (m *mirror) follow(ctx context.Context, w query.Watcher, events int) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for range events {
		c, err := w.Next(ctx)
		if err != nil {
			if !errors.Is(err, &query.Error{Reason: query.Moved}) && !errors.Is(err, &query.Error{Reason: query.Deadline}) &&
				!errors.Is(err, &query.Error{Reason: query.NotOwner}) && !errors.Is(err, &query.Error{Reason: query.NoOwner}) &&
				!errors.Is(err, &query.Error{Reason: query.Restoring}) {
				m.s.t.Errorf("watch: %v", err)
			}
			return
		}
		m.apply(c)
		if m.rng.IntN(20) == 0 {
			m.s.pass(500 * time.Millisecond) // slow
		}
	}
}

func (m *mirror) apply(c query.Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Reset {
		m.rows, m.complete = map[string]int64{}, false
		m.resets++
	}
	for _, r := range c.Rows {
		v := int64(binary.BigEndian.Uint64(r.Value))
		if old := m.rows[string(r.Key)]; v < old {
			m.s.t.Errorf("key %s went back from %d to %d at commit %d", r.Key, old, v, c.Meta.Seq)
		}
		m.rows[string(r.Key)] = v
		m.told++
	}
	if !c.More {
		m.complete = true
		m.seq = c.Meta.Seq
	}
}

// is says whether the copy holds these counts.
func (m *mirror) is(want map[string]int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.complete || len(m.rows) != len(want) {
		return false
	}
	for k, v := range want {
		if m.rows[k] != v {
			return false
		}
	}
	return true
}

// Watchers that break off and come back, while instances come, go, crash and stand still, end up with exactly the rows
// there are: no change is skipped and none goes back.
func TestWatchMoves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
				const keys = 3000
				rng := rand.New(rand.NewPCG(seed, 5))
				var mu sync.Mutex
				live := []*node{s.start("a", counting(), newPebbles(), nil), s.start("b", counting(), newPebbles(), nil)}
				nodes := func() []*node {
					mu.Lock()
					defer mu.Unlock()
					return append([]*node(nil), live...)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				var mirrors []*mirror
				for i := range 6 {
					in := query.Range{}
					switch i {
					case 2, 3:
						in = query.Prefix([]byte("k1"))
					case 4, 5:
						in = query.Range{From: fmt.Appendf(nil, "k%d", i), To: fmt.Appendf(nil, "k%d\x00", i)}
					}
					m := &mirror{s: s, nodes: nodes, task: query.Task{Sub: "counts", Partition: int32(i % 2)}, in: in, rng: rand.New(rand.NewPCG(seed, uint64(50+i)))}
					mirrors = append(mirrors, m)
					wg.Go(func() { m.run(ctx) })
				}
				fed := 0
				for range 8 {
					n := 1 + rng.IntN(600)
					s.feed("in", fed, n, keys)
					fed += n
					s.pass(time.Duration(rng.IntN(1500)) * time.Millisecond)
					i := rng.IntN(len(live))
					old := live[i]
					var fresh *node
					switch rng.IntN(5) {
					case 0:
						old.joined()
						old.crash()
						fresh = s.start(old.name, counting(), old.disk, nil)
					case 1:
						old.freeze(true)
						s.pass(2 * session)
						old.freeze(false)
					case 2:
						fresh = s.start(old.name, counting(), old.stop(), nil)
					}
					if fresh != nil {
						mu.Lock()
						live[i] = fresh
						mu.Unlock()
					}
				}
				s.counts("out", fed, keys)
				for i, m := range mirrors {
					want := map[string]int64{}
					for k := range min(keys, fed) {
						key := fmt.Sprintf("k%d", k)
						if k%2 == i%2 && m.in.Contains([]byte(key)) {
							want[key] = int64((fed - k + keys - 1) / keys)
						}
					}
					s.await(fmt.Sprintf("copy %d", i), func() bool { return m.is(want) })
				}
				cancel()
				wg.Wait()
				for i, m := range mirrors {
					t.Logf("copy %d: %d rows told, %d times from the start", i, m.told, m.resets)
				}
			})
		})
	}
}

// A watcher that comes back in time hears the changes it has missed, and nothing else; one that reads nothing for so long
// that too much waits for it begins again.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", counting(), nil, nil)
		n.awaitTasks(1)
		s.feed("in", 0, 2500, 2500)
		s.counts("out", 2500, 2500)
		st := n.asked("counts")
		task := query.Task{Sub: st.Sub}
		watch := func(from uint64) query.Watcher {
			t.Helper()
			w, err := n.e.Watch(t.Context(), task, query.WatchSpec{Store: st, From: from})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		next := func(w query.Watcher) query.Changes {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			c, err := w.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		w := watch(0)
		rows := 0
		for {
			c := next(w)
			if c.Reset != (rows == 0) {
				t.Errorf("reset %v after %d rows", c.Reset, rows)
			}
			if rows == 0 { // changes before the page that shows the row
				s.send(rec{topic: "in", key: []byte("k999"), value: []byte("again")})
				s.counts2(2501)
			}
			if rows += len(c.Rows); !c.More {
				break
			}
		}
		if rows != 2500 {
			t.Fatalf("%d rows", rows)
		}
		s.feed("in", 2500, 3, 2500)
		seen := map[string]bool{}
		var seq uint64
		for len(seen) < 3 {
			c := next(w)
			seq = c.Meta.Seq
			for _, r := range c.Rows {
				seen[string(r.Key)] = true
				if string(r.Key) == "k999" {
					t.Errorf("key k999, which a page has shown, is told again")
				}
			}
		}
		w.Close()
		s.feed("in", 2503, 2, 2500)
		s.counts2(2506)
		w = watch(seq)
		seen = map[string]bool{}
		for len(seen) < 2 {
			c := next(w)
			if c.Reset {
				t.Fatal("the watch began again")
			}
			for _, r := range c.Rows {
				if k := string(r.Key); k != "k3" && k != "k4" {
					t.Errorf("key %s has not changed", k)
				}
				seen[string(r.Key)] = true
			}
		}
		// Nobody picks up what follows: eleven thousand changed rows are too many.
		s.feed("in", 2505, 22_500, 25_000)
		s.counts2(25_006)
		if c := next(w); !c.Reset {
			t.Errorf("too much waited: %d rows, and no reset", len(c.Rows))
		}
		w.Close()
		// A watcher of what does not change hears how far the task has come, so that it can come back.
		quiet, err := n.e.Watch(t.Context(), task, query.WatchSpec{Store: st, Range: query.Range{From: []byte("x"), To: []byte("x\x00")}, From: 0})
		if err != nil {
			t.Fatal(err)
		}
		defer quiet.Close()
		if c := next(quiet); !c.Reset || c.More || len(c.Rows) != 0 {
			t.Errorf("no rows: %+v", c)
		}
		s.feed("in", 25_005, 1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := quiet.Next(ctx)
		if err != nil || len(c.Rows) != 0 || c.Meta.Seq <= seq {
			t.Errorf("news: %+v, %v", c, err)
		}
	})
}

// Ten thousand watchers of keys that do not change leave nothing behind, and cost no goroutine.
func TestIdleWatchers(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		n := s.start("a", counting(), nil, nil)
		n.awaitTasks(1)
		st := n.asked("counts")
		var ws []query.Watcher
		for i := range 10_000 {
			key := fmt.Appendf(nil, "idle%d", i)
			w, err := n.e.Watch(t.Context(), query.Task{Sub: st.Sub}, query.WatchSpec{Store: st, Range: query.Range{From: key, To: append(key, 0)}})
			if err != nil {
				t.Fatal(err)
			}
			ws = append(ws, w)
		}
		one, err := n.e.Watch(t.Context(), query.Task{Sub: st.Sub}, query.WatchSpec{Store: st, Range: query.Range{From: []byte("k7"), To: []byte("k7\x00")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.feed("in", 0, 1000, 100)
		for c := int64(0); c < 10; {
			ch, err := one.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range ch.Rows {
				c = int64(binary.BigEndian.Uint64(r.Value))
			}
		}
		for _, w := range ws {
			w.Close()
		}
		one.Close()
		n.stop()
		if _, err := n.e.Watch(t.Context(), query.Task{Sub: st.Sub}, query.WatchSpec{Store: st}); err == nil {
			t.Error("an instance that has stopped takes watchers")
		}
	})
}

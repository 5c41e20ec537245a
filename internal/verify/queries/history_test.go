package queries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve/client"
)

// counter is the model of one key: an increment, or a read that says what the count was.
var counter = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(operation).key
			byKey[k] = append(byKey[k], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		n := state.(int64)
		if input.(operation).read {
			return output.(int64) == n, n
		}
		return true, n + 1
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
}

type operation struct {
	key  string
	read bool
}

// witness is a history of operations, with what all clients have seen.
type witness struct {
	mu      sync.Mutex
	began   time.Time
	ops     []porcupine.Operation
	writes  map[string]int64
	reads   int
	refused map[query.Reason]int
}

func (w *witness) now() int64 { return time.Since(w.began).Nanoseconds() }

// V7: clients write, and read what they and everybody else have written, while instances stop, start and stand still. With
// the positions of all writes and answers in common the history is one that a single register per key could have given.
func TestLinearizable(t *testing.T) {
	w := newWorld(t)
	w.start("a")
	w.start("b")
	w.ready()
	wit := &witness{began: time.Now(), writes: make(map[string]int64), refused: make(map[query.Reason]int)}
	keys := []string{"apple", "banana", "cherry", "date", "elder", "fig"}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	seen := client.NewSession(nil)
	for id := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(id)))
			for ctx.Err() == nil {
				k := keys[rng.IntN(len(keys))]
				call := wit.now()
				at := w.send("events", k, "x", time.Now())
				wit.wrote(id, k, call, at, seen)
				pause(ctx, time.Duration(rng.IntN(8))*time.Millisecond)
			}
		})
	}
	for id := 2; id < 6; id++ {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(id)))
			c := w.client()
			r, err := client.Store[string, int64](c, "counts", nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for ctx.Err() == nil {
				k := keys[rng.IntN(len(keys))]
				call := wit.now()
				ask, done := context.WithTimeout(ctx, 2*time.Second)
				got, err := r.In(seen).Get(ask, k)
				done()
				wit.saw(t, id, k, call, got.Value, err)
				pause(ctx, time.Duration(rng.IntN(4))*time.Millisecond)
			}
		})
	}
	w.disturb(ctx, rand.New(rand.NewPCG(7, 7)))
	// A machine that has other things to do may have got few answers until now.
	w.await("enough answers", func() bool {
		wit.mu.Lock()
		defer wit.mu.Unlock()
		return wit.reads >= 50
	})
	cancel()
	wg.Wait()
	t.Logf("%d operations, %d reads, without an answer: %v", len(wit.ops), wit.reads, wit.refused)
	switch result, info := porcupine.CheckOperationsVerbose(counter, wit.ops, time.Minute); result {
	case porcupine.Illegal:
		t.Errorf("no order of these operations explains what was read")
		for _, op := range wit.ops[max(0, len(wit.ops)-40):] {
			t.Log(counter.DescribeOperation(op.Input, op.Output), op.Call, op.Return)
		}
		_ = info
	case porcupine.Unknown:
		t.Errorf("the history could not be judged in time")
	}
}

// pause waits unless the context ends before.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *witness) wrote(id int, key string, call int64, at query.Position, s *client.Session) {
	s.Saw(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[key]++
	w.ops = append(w.ops, porcupine.Operation{ClientId: id, Input: operation{key: key}, Call: call, Output: nil, Return: w.now()})
}

func (w *witness) saw(t *testing.T, id int, key string, call, count int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		var e *query.Error
		if !errors.As(err, &e) {
			t.Errorf("key %s: %v", key, err)
			return
		}
		w.refused[e.Reason]++
		return
	}
	w.reads++
	w.ops = append(w.ops, porcupine.Operation{ClientId: id, Input: operation{key: key, read: true}, Call: call, Output: count, Return: w.now()})
}

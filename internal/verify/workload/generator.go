package workload

import (
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"time"
)

// Input is one input record before it is produced.
type Input struct {
	Topic      string
	Key, Value []byte
}

// Generator makes the inputs of a run, those of seq, sum and bank in turn. One goroutine uses it.
type Generator struct {
	topics Topics
	rng    *rand.Rand
	keys   int64
	seq    []int64 // last number per key
	n      int64

	events *EventGenerator // nil if the run has none
	every  int64
	turn   int64
}

// NewGenerator returns a generator over so many keys and accounts.
func NewGenerator(t Topics, keys int, rng *rand.Rand) *Generator {
	return &Generator{topics: t, rng: rng, keys: int64(keys), seq: make([]int64, keys)}
}

// WithEvents makes one of so many inputs an event, or all of them if the run has no other workload. step is how far their
// times move on per event.
func (g *Generator) WithEvents(every int, step time.Duration) *Generator {
	g.events, g.every = NewEventGenerator(g.topics.EventsIn, step, g.rng), int64(every)
	return g
}

// Next returns the next input.
func (g *Generator) Next() (Input, error) {
	if g.events != nil {
		if g.turn++; g.turn%g.every == 0 || !g.topics.Bank() {
			return g.events.Next()
		}
	}
	g.n++
	k := g.rng.Int64N(g.keys)
	switch g.n % 3 {
	case 0:
		g.seq[k]++
		return Input{g.topics.SeqIn, fmt.Appendf(nil, "k%d", k), number(g.seq[k])}, nil
	case 1:
		return Input{g.topics.SumIn, fmt.Appendf(nil, "k%d", k), number(1 + g.rng.Int64N(9))}, nil
	}
	to := (k + 1 + g.rng.Int64N(g.keys-1)) % g.keys
	v, err := json.Marshal(Transfer{g.n, k, to, 1 + g.rng.Int64N(100)})
	return Input{g.topics.BankIn, fmt.Appendf(nil, "t%d", g.n), v}, err
}

// Ends returns what has to be produced last, after which there are no more events.
func (g *Generator) Ends() ([]Input, error) {
	if g.events == nil {
		return nil, nil
	}
	return g.events.Ends()
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

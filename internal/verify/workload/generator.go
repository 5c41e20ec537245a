package workload

import (
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
)

// Input is one input record before it is produced.
type Input struct {
	Topic      string
	Key, Value []byte
}

// Generator makes the inputs of a run, the three workloads in turn. One goroutine uses it.
type Generator struct {
	topics Topics
	rng    *rand.Rand
	keys   int64
	seq    []int64 // last number per key
	n      int64
}

// NewGenerator returns a generator over so many keys and accounts.
func NewGenerator(t Topics, keys int, rng *rand.Rand) *Generator {
	return &Generator{topics: t, rng: rng, keys: int64(keys), seq: make([]int64, keys)}
}

// Next returns the next input.
func (g *Generator) Next() (Input, error) {
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

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

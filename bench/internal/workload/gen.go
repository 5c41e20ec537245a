package workload

import (
	"encoding/binary"
	"math/rand/v2"
)

// Rec is one record of an input before encoding.
type Rec struct {
	ID     uint64 // key number
	Time   int64  // ms
	Seq    int64  // position in the input
	Amount int64  // 40 random bits: sums stay far from overflow
}

// Gen yields the records of an input in order.
type Gen struct {
	spec   Spec
	n, seq int64
	rnd    *rand.Rand
	zipf   *rand.Zipf
	words  vocabulary
}

// NewGen returns a generator of n records.
func NewGen(s Spec, n int, seed uint64) *Gen {
	g := &Gen{spec: s, n: int64(n), rnd: rand.New(rand.NewPCG(seed, 0x7469646d61726b)), words: newVocabulary()}
	if s.Zipf > 0 {
		g.zipf = rand.NewZipf(g.rnd, s.Zipf, 1, s.Keys-1)
	}
	return g
}

// Next fills r and reports whether there was a record left.
func (g *Gen) Next(r *Rec) bool {
	if g.seq >= g.n {
		return false
	}
	r.Seq = g.seq
	switch {
	case g.spec.Fill && uint64(g.seq) < g.spec.Keys:
		r.ID = uint64(g.seq)
	case g.zipf != nil:
		r.ID = g.zipf.Uint64()
	default:
		r.ID = g.rnd.Uint64N(g.spec.Keys)
	}
	r.Time = Base + g.seq*g.spec.Span/g.n
	r.Amount = int64(g.rnd.Uint64() >> 24)
	g.seq++
	return true
}

// AppendKey appends the key of a key number.
func AppendKey(b []byte, id uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, mix(id))
	return binary.BigEndian.AppendUint64(b, id)
}

// ID returns the key number of a key.
func ID(key []byte) uint64 { return binary.BigEndian.Uint64(key[8:]) }

// Time returns the time in a value, in ms.
func Time(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }

// Seq returns the position of the record with this value.
func Seq(value []byte) int64 { return int64(binary.BigEndian.Uint64(value[8:])) }

// Amount returns the amount in a value.
func Amount(value []byte) int64 { return int64(binary.BigEndian.Uint64(value[16:])) }

// SetAmount writes an amount into a value.
func SetAmount(value []byte, amount int64) { binary.BigEndian.PutUint64(value[16:], uint64(amount)) }

// AppendValue appends the value of r.
func (g *Gen) AppendValue(b []byte, r *Rec) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Amount))
	return g.words.text(b, uint64(r.Seq), g.spec.Value()-24)
}

// vocabulary is 64 words of eight letters: text of them is halved by compression, roughly as real text is.
type vocabulary [64][8]byte

func newVocabulary() (v vocabulary) {
	for i := range v {
		x := mix(uint64(i) + 1<<32)
		for j := range v[i] {
			v[i][j] = 'a' + byte(x>>(8*j))%26
		}
	}
	return v
}

// text appends n letters.
func (v *vocabulary) text(b []byte, x uint64, n int) []byte {
	x = mix(x + 1)
	for ; n > 0; n -= 8 {
		if x < 64 {
			x = mix(x + uint64(n))
		}
		b = append(b, v[x%64][:min(n, 8)]...)
		x /= 64
	}
	return b
}

// mix is the finaliser of splitmix64: a bijection that scatters consecutive numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package processor

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// What a slab has handed out never changes, whatever is encoded after it.
func TestSlabKeepsWhatItHandedOut(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var s slab
		var got, want [][]byte
		for i := range 3000 {
			n := rng.IntN(200)
			switch rng.IntN(100) {
			case 0:
				n = rng.IntN(3 * slabSize)
			case 1:
				n = 0
			}
			b := bytes.Repeat([]byte{byte(i)}, n)
			want = append(want, b)
			if rng.IntN(2) == 0 {
				got = append(got, s.copy(b))
			} else {
				got = append(got, s.take(append(s.room(), b...)))
			}
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) || got[i] == nil || cap(got[i]) != len(got[i]) {
				t.Fatalf("seed %d: piece %d: %d bytes, cap %d, want %d", seed, i, len(got[i]), cap(got[i]), len(want[i]))
			}
		}
	}
}

func TestSlabAllocatesChunks(t *testing.T) {
	var s slab
	b := make([]byte, 100)
	n := testing.AllocsPerRun(10, func() {
		for range 600 {
			s.take(append(s.room(), b...))
		}
	})
	if n > 1 {
		t.Errorf("%v allocations for 600 pieces of 100 bytes", n)
	}
}

func TestSlabTakesNilForEmpty(t *testing.T) {
	var s slab
	if s.take(nil) == nil || s.copy([]byte{}) == nil {
		t.Error("empty became nil")
	}
}

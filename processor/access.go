package processor

import (
	"math"

	"github.com/tidemark/tidemark/codec"
)

// Forever is the retention of a store that drops nothing.
const Forever = math.MaxInt64

// StoreConfig says how a custom processor of a task uses a store that keeps its rows for a while.
type StoreConfig[K any] struct {
	Scope *Scope         // the processor's
	Key   codec.Codec[K] // of the store
	Node  *Node          // of the processor that owns the store: rows are kept by its watermark; nil for Forever
	Keep  int64          // for how long, in ms; Forever for no limit
	Owner bool           // the processor at hand drops what is not kept
}

// access is what the stores of custom processors have in common.
type access[K any] struct {
	StoreConfig[K]
	buf []byte
}

func (a *access[K]) encode(k K) ([]byte, error) {
	b, err := a.Key.Append(a.buf[:0], k)
	if err != nil {
		return nil, a.Scope.c.fail(a.Scope.op, StageEncode, err)
	}
	a.buf = b
	return b, nil
}

// state wraps an error of the state.
func (a *access[K]) state(err error) error {
	if err == nil {
		return nil
	}
	return a.Scope.c.stateError(a.Scope.op, err)
}

// horizon returns the time up to which nothing is kept, the smallest int64 for none.
func (a *access[K]) horizon() int64 {
	if a.Node == nil || a.Keep == Forever {
		return math.MinInt64
	}
	return satAdd(a.Node.w, -a.Keep)
}

// wrote counts a change of the state.
func (a *access[K]) wrote() { a.Scope.c.effects++ }

// decodeKey decodes a stored key, whose bytes are the store's.
func (a *access[K]) decodeKey(key []byte) (K, error) {
	return a.Key.Decode(append([]byte(nil), key...))
}

// drops makes the owner drop rows as its watermark moves.
func (a *access[K]) drops(s sweep) {
	if a.Owner && a.Keep != Forever {
		a.Scope.time.sweeps = append(a.Scope.time.sweeps, s)
	}
}

package system

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/window"
)

// sessionGap is the gap of W5. Its times are even and the gap is odd, so that no two records are exactly a gap apart.
const sessionGap = 30_001 * time.Millisecond

// sessionKey is the output key of W5: key, start and time of the last record.
func sessionKey(dst, key []byte, w window.Bounds) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, key...), uint64(w.Start))
	return binary.BigEndian.AppendUint64(dst, uint64(w.End-sessionGap.Milliseconds()))
}

// hoppingKey is the output key of H10 and H600: key and end of the window.
func hoppingKey(dst, key []byte, w window.Bounds) []byte {
	return binary.BigEndian.AppendUint64(append(dst, key...), uint64(w.End))
}

// stats is the aggregate of W3.
type stats struct{ count, sum, min, max int64 }

func (s stats) add(value []byte) stats {
	x := workload.Amount(value)
	if s.count == 0 {
		return stats{1, x, x, x}
	}
	return stats{s.count + 1, s.sum + x, min(s.min, x), max(s.max, x)}
}

func (s stats) merge(o stats) stats {
	switch {
	case s.count == 0:
		return o
	case o.count == 0:
		return s
	}
	return stats{s.count + o.count, s.sum + o.sum, min(s.min, o.min), max(s.max, o.max)}
}

// statsCodec writes the four numbers, 8 bytes each.
type statsCodec struct{}

func (statsCodec) Append(dst []byte, s stats) ([]byte, error) {
	for _, n := range [...]int64{s.count, s.sum, s.min, s.max} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst, nil
}

func (statsCodec) Decode(b []byte) (s stats, err error) {
	if len(b) != 32 {
		return s, fmt.Errorf("stats of %d bytes", len(b))
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
	return stats{n(0), n(8), n(16), n(24)}, nil
}

func (statsCodec) JSON(dst, b []byte) ([]byte, error) { return fmt.Appendf(dst, "%q", b), nil }
func (statsCodec) Schema() string                     { return "stats" }
func (statsCodec) Aliases() bool                      { return false }

// pair is the aggregate of W5.
type pair struct{ count, sum int64 }

func (p pair) add(value []byte) pair { return pair{p.count + 1, p.sum + workload.Amount(value)} }
func (p pair) merge(o pair) pair     { return pair{p.count + o.count, p.sum + o.sum} }

// pairCodec writes the two numbers, 8 bytes each.
type pairCodec struct{}

func (pairCodec) Append(dst []byte, p pair) ([]byte, error) {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(p.count)), uint64(p.sum)), nil
}

func (pairCodec) Decode(b []byte) (p pair, err error) {
	if len(b) != 16 {
		return p, fmt.Errorf("pair of %d bytes", len(b))
	}
	return pair{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

func (pairCodec) JSON(dst, b []byte) ([]byte, error) { return fmt.Appendf(dst, "%q", b), nil }
func (pairCodec) Schema() string                     { return "pair" }
func (pairCodec) Aliases() bool                      { return false }

package watermark

import (
	"errors"
	"fmt"

	"github.com/tidemark/tidemark/internal/wire"
)

// ErrState marks bytes that are not the state of a generator or a vector. Test
// with errors.Is.
var ErrState = errors.New("bad watermark state")

// MaxState is the number of bytes the state of a generator should not exceed,
// since it travels in every progress record. New checks a new generator.
const MaxState = 256

// Record is what a generator may look at. It belongs to the caller, who
// reuses it: a generator keeps nothing of it.
type Record struct {
	// Time is the event time.
	Time int64
	// Appended is the time at which the broker appended the record; Unknown
	// where the topic does not keep it.
	Appended int64
	// Value is the decoded value, set only if Settings.NeedsValue says so.
	Value any
	// Header returns the value of the last header with a key. It may be nil for
	// a record without headers.
	Header func(key string) ([]byte, bool)
}

// Generator derives the watermark of one partition from its records. It must
// be a pure function of the records observed so far, without clock, randomness
// or I/O: the same log then gives the same watermarks, wherever it is read.
type Generator interface {
	// Observe takes note of the next record. The caller judges and applies the
	// record under the watermark before it: no record makes itself late.
	Observe(r *Record)
	// Watermark returns W, Unknown before the first record. It never falls.
	Watermark() int64
	// Append appends the state to dst, at most MaxState bytes.
	Append(dst []byte) []byte
	// Restore sets the state from what Append wrote. It does not keep b.
	Restore(b []byte) error
}

const stateVersion = 1

// position is what all generators of this package keep. One layout serves them
// all, so a topology may change from one to another without W falling.
type position struct {
	seen int64 // highest time observed, for those that look at times
	w    int64
}

// append appends the state:
//
//	+---------+------+----+----------------+
//	| version | seen | W  | rest           |
//	| 1 byte  | sv   | sv | custom ones    |
//	+---------+------+----+----------------+
//
// sv is a zigzag varint. There is no checksum: the record around it has one.
func (p *position) append(dst []byte) []byte {
	dst = append(dst, stateVersion)
	dst = wire.AppendVarint(dst, p.seen)
	return wire.AppendVarint(dst, p.w)
}

// restore reads what append wrote and returns the rest.
func (p *position) restore(b []byte) ([]byte, error) {
	r := wire.NewReader(b)
	version, seen, w := r.Byte(), r.Varint(), r.Varint()
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("watermark: restore a generator: %w", ErrState)
	}
	if version != stateVersion {
		return nil, &VersionError{Format: "generator state", Have: int(version), Min: stateVersion, Max: stateVersion}
	}
	p.seen, p.w = seen, w
	return r.Bytes(r.Len()), nil
}

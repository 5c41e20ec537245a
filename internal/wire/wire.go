// Package wire holds the primitives of the project's own binary formats:
// uvarints, zigzag varints, strings and a bounds-checked reader that remembers
// its first error. It knows no format; versions, checksums and drawings live
// beside the encoders that use it.
//
// It is pure: no I/O, no goroutines, callable from anywhere.
package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed reports bytes that end early, a number that does not fit, or a
// count that the remaining bytes cannot hold.
var ErrMalformed = errors.New("malformed bytes")

// AppendUvarint appends v in base-128, least significant group first.
func AppendUvarint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

// AppendVarint appends v zigzag encoded.
func AppendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// AppendString appends the length of s as a uvarint, then its bytes.
func AppendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// AppendUint64 appends v big-endian in eight bytes.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// Reader consumes a byte slice from its front. After the first malformed value
// every further read returns zero values; Err says so once at the end.
type Reader struct {
	b      []byte
	failed bool
}

// NewReader returns a reader over b, which it does not modify.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err returns ErrMalformed if any read so far failed.
func (r *Reader) Err() error {
	if r.failed {
		return ErrMalformed
	}
	return nil
}

// Len returns the number of bytes not yet read; zero after a failure.
func (r *Reader) Len() int { return len(r.b) }

func (r *Reader) fail() {
	r.failed = true
	r.b = nil
}

// Bytes returns the next n bytes; the result aliases the input.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// Byte returns the next byte.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint64 reads eight big-endian bytes.
func (r *Reader) Uint64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads a uvarint in its shortest form, so that one value has one encoding.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || (n > 1 && r.b[n-1] == 0) {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Varint reads a zigzag varint.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Int32 reads a uvarint that must fit a non-negative int32.
func (r *Reader) Int32() int32 {
	v := r.Uvarint()
	if v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

// Count reads a number of elements, each of which takes at least size bytes.
// It fails when the rest of the input cannot hold that many, so that a hostile
// count never makes the caller allocate more than the input's own size.
func (r *Reader) Count(size int) int {
	v := r.Uvarint()
	if v > uint64(len(r.b)/max(size, 1)) {
		r.fail()
		return 0
	}
	return int(v)
}

// String reads a uvarint length and that many bytes.
func (r *Reader) String() string {
	return string(r.Bytes(r.Count(1)))
}

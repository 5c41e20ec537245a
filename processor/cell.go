package processor

import (
	"encoding/binary"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/window"
)

// cell is the row of one window of one key.
type cell[A any] struct {
	State window.State // its MaxTime is the timestamp of the row
	Acc   A
	Last  A     // the value shown last; only in window.ModeRetracting, and only once something was shown
	At    int64 // the deadline that counts, in ms; it is not stored, and 0 then
}

// cellCodec encodes cells:
//
//	+---------------+-------+-----------+-----------+
//	| length of the | state | last      | value     |
//	| two, uvarint  |       | (if kept) |           |
//	+---------------+-------+-----------+-----------+
//
// The first part travels in a record header of the changelog, so that its value is that of Kafka Streams.
type cellCodec[A any] struct {
	value    codec.Codec[A]
	retracts bool
}

// maxShort is the largest length whose uvarint is one byte.
const maxShort = 0x7f

func (c cellCodec[A]) Append(dst []byte, v cell[A]) ([]byte, error) {
	at := len(dst)
	dst = append(dst, 0)
	dst = v.State.Append(dst)
	if c.retracts && v.State.Flags&window.Emitted != 0 {
		var err error
		if dst, err = c.value.Append(dst, v.Last); err != nil {
			return dst[:at], err
		}
	}
	if n := len(dst) - at - 1; n <= maxShort {
		dst[at] = byte(n)
	} else {
		head := append([]byte(nil), dst[at+1:]...)
		dst = binary.AppendUvarint(dst[:at], uint64(n))
		dst = append(dst, head...)
	}
	return c.value.Append(dst, v.Acc)
}

func (c cellCodec[A]) Decode(b []byte) (cell[A], error) {
	var v cell[A]
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return v, window.ErrMalformed
	}
	state, rest, err := window.ParseState(b[size : size+int(n)])
	if err != nil {
		return v, err
	}
	v.State = state
	if c.retracts && state.Flags&window.Emitted != 0 {
		if v.Last, err = c.value.Decode(rest); err != nil {
			return v, err
		}
	}
	v.Acc, err = c.value.Decode(b[size+int(n):])
	return v, err
}

func (c cellCodec[A]) JSON(dst, b []byte) ([]byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return dst, window.ErrMalformed
	}
	return c.value.JSON(dst, b[size+int(n):])
}

func (c cellCodec[A]) Schema() string { return c.value.Schema() }

// Aliases implements codec.Aliasing.
func (c cellCodec[A]) Aliases() bool {
	a, known := c.value.(codec.Aliasing)
	return !known || a.Aliases()
}

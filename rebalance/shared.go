package rebalance

import (
	"encoding/hex"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

// appendShared appends s by what it shares with last. Endpoints, topic names and
// racks of one application differ in their middle, or not at all.
//
//	+------+
//	| 0    |                                            s equals last
//	+------+--------+---------+-----------+--------+
//	| uv front + 1  | uv back | uv length | middle |   else
//	+---------------+---------+-----------+--------+
//
// front and back are the numbers of bytes shared at both ends.
func appendShared(dst []byte, last, s string) []byte {
	if s == last {
		return append(dst, 0)
	}
	limit := min(len(last), len(s))
	front := 0
	for front < limit && last[front] == s[front] {
		front++
	}
	back := 0
	for back < limit-front && last[len(last)-1-back] == s[len(s)-1-back] {
		back++
	}
	dst = wire.AppendUvarint(dst, uint64(front)+1)
	dst = wire.AppendUvarint(dst, uint64(back))
	return wire.AppendString(dst, s[front:len(s)-back])
}

// readShared reads what appendShared wrote.
func readShared(r *wire.Reader, last string) string {
	front := r.Int32() - 1
	if front < 0 {
		return last
	}
	back := r.Int32()
	middle := r.String()
	if r.Err() != nil {
		return ""
	}
	if int64(front)+int64(back) > int64(len(last)) {
		r.Bytes(-1) // shares more than there is
		return ""
	}
	var b strings.Builder
	b.WriteString(last[:front])
	b.WriteString(middle)
	b.WriteString(last[len(last)-int(back):])
	return b.String()
}

// appendHex appends a string as uv 2*length + 1 and the bytes its hexadecimal digits
// stand for, or as uv 2*length and itself when it is something else. Instance ids are
// random hexadecimal numbers, which share nothing with each other.
func appendHex(dst []byte, s string) []byte {
	raw, err := hex.DecodeString(s)
	if err != nil || hex.EncodeToString(raw) != s {
		dst = wire.AppendUvarint(dst, uint64(len(s))<<1)
		return append(dst, s...)
	}
	dst = wire.AppendUvarint(dst, uint64(len(raw))<<1|1)
	return append(dst, raw...)
}

// readHex reads what appendHex wrote.
func readHex(r *wire.Reader) string {
	head := r.Int32()
	b := r.Bytes(int(head >> 1))
	if head&1 == 1 {
		return hex.EncodeToString(b)
	}
	return string(b)
}

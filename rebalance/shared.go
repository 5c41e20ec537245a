package rebalance

import (
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

// appendShared appends s as the number of bytes it shares with last at the front, the
// number it shares at the back, and what is between them. Endpoints, topic names and
// instance ids of one application differ in their middle.
//
//	+----------+---------+-----------+--------+
//	| uv front | uv back | uv length | middle |
//	+----------+---------+-----------+--------+
func appendShared(dst []byte, last, s string) []byte {
	limit := min(len(last), len(s))
	front := 0
	for front < limit && last[front] == s[front] {
		front++
	}
	back := 0
	for back < limit-front && last[len(last)-1-back] == s[len(s)-1-back] {
		back++
	}
	dst = wire.AppendUvarint(dst, uint64(front))
	dst = wire.AppendUvarint(dst, uint64(back))
	return wire.AppendString(dst, s[front:len(s)-back])
}

// readShared reads what appendShared wrote.
func readShared(r *wire.Reader, last string) string {
	front, back := r.Int32(), r.Int32()
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

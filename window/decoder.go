package window

import (
	"encoding/binary"
	"math"
)

// decoder takes values off the front of b; bad is set when there are not enough bytes or they make no sense.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n <= 0 || len(d.b) < n {
		d.b, d.bad = nil, true
		return nil
	}
	t := d.b[:n]
	d.b = d.b[n:]
	return t
}

func (d *decoder) byte() byte {
	if t := d.take(1); t != nil {
		return t[0]
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if t := d.take(8); t != nil {
		return binary.BigEndian.Uint64(t)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	v, n := binary.Uvarint(d.b)
	if d.take(n); v > math.MaxUint32 {
		d.bad = true
	}
	return uint32(v)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.take(n)
	return v
}

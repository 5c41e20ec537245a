package wire_test

import (
	"errors"
	"math"
	"testing"

	"github.com/tidemark/tidemark/internal/wire"
)

func TestRoundTrip(t *testing.T) {
	b := wire.AppendUvarint(nil, math.MaxUint64)
	b = wire.AppendVarint(b, math.MinInt64)
	b = wire.AppendVarint(b, math.MaxInt64)
	b = wire.AppendVarint(b, -1)
	b = wire.AppendString(b, "héllo")
	b = wire.AppendUint64(b, 1<<63)
	b = append(b, 7)
	b = wire.AppendUvarint(b, math.MaxInt32)
	r := wire.NewReader(b)
	if got := r.Uvarint(); got != math.MaxUint64 {
		t.Errorf("uvarint %d", got)
	}
	for _, want := range []int64{math.MinInt64, math.MaxInt64, -1} {
		if got := r.Varint(); got != want {
			t.Errorf("varint %d, want %d", got, want)
		}
	}
	if got := r.String(); got != "héllo" {
		t.Errorf("string %q", got)
	}
	if got := r.Uint64(); got != 1<<63 {
		t.Errorf("uint64 %d", got)
	}
	if got := r.Byte(); got != 7 {
		t.Errorf("byte %d", got)
	}
	if got := r.Int32(); got != math.MaxInt32 {
		t.Errorf("int32 %d", got)
	}
	if r.Len() != 0 || r.Err() != nil {
		t.Errorf("%d bytes left, %v", r.Len(), r.Err())
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		b    []byte
		read func(*wire.Reader)
	}{
		"no byte":           {nil, func(r *wire.Reader) { r.Byte() }},
		"cut uvarint":       {[]byte{0x80}, func(r *wire.Reader) { r.Uvarint() }},
		"long zero":         {[]byte{0x80, 0}, func(r *wire.Reader) { r.Uvarint() }},
		"uvarint overflow":  {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, func(r *wire.Reader) { r.Uvarint() }},
		"int32 overflow":    {wire.AppendUvarint(nil, math.MaxInt32+1), func(r *wire.Reader) { r.Int32() }},
		"count too high":    {[]byte{3, 1, 2, 3, 4, 5}, func(r *wire.Reader) { r.Count(2) }},
		"string too long":   {[]byte{3, 'a', 'b'}, func(r *wire.Reader) { _ = r.String() }},
		"negative length":   {[]byte{1}, func(r *wire.Reader) { r.Bytes(-1) }},
		"short uint64":      {make([]byte, 7), func(r *wire.Reader) { r.Uint64() }},
		"after a bad value": {[]byte{0x80, 0, 1, 2}, func(r *wire.Reader) { r.Uvarint(); r.Byte() }},
	}
	for name, c := range cases {
		r := wire.NewReader(c.b)
		c.read(r)
		if !errors.Is(r.Err(), wire.ErrMalformed) || r.Len() != 0 || r.Byte() != 0 {
			t.Errorf("%s: error %v, %d bytes left", name, r.Err(), r.Len())
		}
	}
}

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Int64 returns the codec of Kafka's LongSerializer: 8 bytes, big-endian two's complement.
func Int64() Codec[int64] { return word64[int64]{schema: "int64"} }

// Int32 returns the codec of Kafka's IntegerSerializer: 4 bytes, big-endian two's complement.
func Int32() Codec[int32] { return word32[int32]{schema: "int32"} }

// Float64 returns the codec of Kafka's DoubleSerializer: the 8 bytes of the IEEE 754 bit pattern, big-endian.
func Float64() Codec[float64] { return float64Codec{} }

// Bool returns the codec of Kafka's BooleanSerializer: one byte, 0 or 1.
func Bool() Codec[bool] { return boolCodec{} }

// sizeError reports an encoding of the wrong length.
func sizeError(schema string, want, have int) error {
	return fmt.Errorf("codec: %s: want %d bytes, have %d: %w", schema, want, have, ErrMalformed)
}

// word64 is the codec of the integers that travel as 8 bytes. int and uint are among them on every platform, so that
// state can move between machines.
type word64[T int | int64 | uint | uint64] struct{ schema string }

func (word64[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (c word64[T]) Decode(b []byte) (T, error) {
	if len(b) != 8 {
		return 0, sizeError(c.schema, 8, len(b))
	}
	u := binary.BigEndian.Uint64(b)
	v := T(u)
	if uint64(v) != u {
		return 0, fmt.Errorf("codec: %s: %d does not fit: %w", c.schema, u, ErrMalformed)
	}
	return v, nil
}

func (c word64[T]) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	if v < 0 {
		return strconv.AppendInt(dst, int64(v), 10), nil
	}
	return strconv.AppendUint(dst, uint64(v), 10), nil
}

func (c word64[T]) Schema() string { return c.schema }
func (word64[T]) Aliases() bool    { return false }

// word32 is the codec of 4-byte integers.
type word32[T int32 | uint32] struct{ schema string }

func (word32[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (c word32[T]) Decode(b []byte) (T, error) {
	if len(b) != 4 {
		return 0, sizeError(c.schema, 4, len(b))
	}
	return T(binary.BigEndian.Uint32(b)), nil
}

func (c word32[T]) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(dst, int64(v), 10), nil
}

func (c word32[T]) Schema() string { return c.schema }
func (word32[T]) Aliases() bool    { return false }

// word16 is the codec of 2-byte integers, Kafka's ShortSerializer.
type word16[T int16 | uint16] struct{ schema string }

func (word16[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
}

func (c word16[T]) Decode(b []byte) (T, error) {
	if len(b) != 2 {
		return 0, sizeError(c.schema, 2, len(b))
	}
	return T(binary.BigEndian.Uint16(b)), nil
}

func (c word16[T]) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(dst, int64(v), 10), nil
}

func (c word16[T]) Schema() string { return c.schema }
func (word16[T]) Aliases() bool    { return false }

// word8 is the codec of 1-byte integers.
type word8[T int8 | uint8] struct{ schema string }

func (word8[T]) Append(dst []byte, v T) ([]byte, error) { return append(dst, byte(v)), nil }

func (c word8[T]) Decode(b []byte) (T, error) {
	if len(b) != 1 {
		return 0, sizeError(c.schema, 1, len(b))
	}
	return T(b[0]), nil
}

func (c word8[T]) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(dst, int64(v), 10), nil
}

func (c word8[T]) Schema() string { return c.schema }
func (word8[T]) Aliases() bool    { return false }

type float64Codec struct{}

func (float64Codec) Append(dst []byte, v float64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

func (float64Codec) Decode(b []byte) (float64, error) {
	if len(b) != 8 {
		return 0, sizeError("float64", 8, len(b))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

func (c float64Codec) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return appendFloat(dst, v, 64), nil
}

func (float64Codec) Schema() string { return "float64" }
func (float64Codec) Aliases() bool  { return false }

// float32Codec is Kafka's FloatSerializer.
type float32Codec struct{}

func (float32Codec) Append(dst []byte, v float32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), nil
}

func (float32Codec) Decode(b []byte) (float32, error) {
	if len(b) != 4 {
		return 0, sizeError("float32", 4, len(b))
	}
	return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
}

func (c float32Codec) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return appendFloat(dst, float64(v), 32), nil
}

func (float32Codec) Schema() string { return "float32" }
func (float32Codec) Aliases() bool  { return false }

// appendFloat writes the values that JSON has no number for as strings.
func appendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(dst, strconv.FormatFloat(v, 'g', -1, bits))
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

type boolCodec struct{}

func (boolCodec) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolCodec) Decode(b []byte) (bool, error) {
	if len(b) != 1 {
		return false, sizeError("bool", 1, len(b))
	}
	if b[0] > 1 {
		return false, fmt.Errorf("codec: bool: byte %d: %w", b[0], ErrMalformed)
	}
	return b[0] == 1, nil
}

func (c boolCodec) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	return strconv.AppendBool(dst, v), nil
}

func (boolCodec) Schema() string { return "bool" }
func (boolCodec) Aliases() bool  { return false }

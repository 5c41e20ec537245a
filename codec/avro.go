package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/twmb/avro"
)

// Avro returns a codec that writes T in Avro's binary form without any header. The schema is Avro's JSON; T is a struct
// with `avro` tags, a basic type, or any for the generic form. The codec's schema is the SHA-256 fingerprint of the
// canonical form. Maps inside T are written in no fixed order.
func Avro[T any](schema string) (Codec[T], error) {
	s, err := avro.Parse(schema)
	if err != nil {
		return nil, fmt.Errorf("codec: avro schema: %w", err)
	}
	c := &avroCodec[T]{s: s, schema: "avro:" + hex.EncodeToString(s.Fingerprint(sha256.New()))}
	return c, nil
}

type avroCodec[T any] struct {
	s      *avro.Schema
	schema string
}

func (c *avroCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	out, err := c.s.AppendEncode(dst, &v)
	if err != nil {
		return nil, fmt.Errorf("codec: encode avro: %w", err)
	}
	return out, nil
}

func (c *avroCodec[T]) Decode(b []byte) (T, error) {
	var v T
	rest, err := c.s.Decode(b, &v)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes left over", len(rest))
	}
	if err != nil {
		var zero T
		return zero, fmt.Errorf("codec: decode avro: %w: %w", ErrMalformed, err)
	}
	return v, nil
}

func (c *avroCodec[T]) JSON(dst, b []byte) ([]byte, error) {
	var v any
	if _, err := c.s.Decode(b, &v); err != nil {
		return nil, fmt.Errorf("codec: decode avro: %w: %w", ErrMalformed, err)
	}
	out, err := c.s.AppendEncodeJSON(dst, v)
	if err != nil {
		return nil, fmt.Errorf("codec: avro as json: %w", err)
	}
	return out, nil
}

func (c *avroCodec[T]) Schema() string { return c.schema }

package codec

import (
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"reflect"
	"sync"
)

// JSON returns a codec that writes T as compact JSON with sorted map keys. Durations are written as nanoseconds.
// It returns an error that wraps ErrUnsupported if T holds something JSON has no form for (functions, channels,
// interfaces with methods, complex numbers), or a struct all of whose fields are unexported and would be lost.
func JSON[T any]() (Codec[T], error) {
	t := reflect.TypeFor[T]()
	shape, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	c := &jsonCodec[T]{
		schema: "json:" + shape,
		opts:   json.JoinOptions(json.Deterministic(true), jsonv1.FormatDurationAsNano(true)),
	}
	if t.Kind() == reflect.Pointer {
		return &jsonPointerCodec[T]{c}, nil
	}
	return c, nil
}

type jsonCodec[T any] struct {
	schema string
	opts   json.Options
	pool   sync.Pool // of *jsonScratch[T]
}

// jsonScratch is what one encoding needs on the heap: the encoder takes a writer and a pointer, and pooling both spares
// two allocations per value.
type jsonScratch[T any] struct {
	buf []byte
	v   T
}

func (s *jsonScratch[T]) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}

func (c *jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	s, ok := c.pool.Get().(*jsonScratch[T])
	if !ok {
		s = new(jsonScratch[T])
	}
	s.buf, s.v = dst, v
	err := json.MarshalWrite(s, &s.v, c.opts)
	dst = s.buf
	*s = jsonScratch[T]{}
	c.pool.Put(s)
	if err != nil {
		return nil, fmt.Errorf("codec: encode json: %w", err)
	}
	return dst, nil
}

func (c *jsonCodec[T]) Decode(b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v, c.opts); err != nil {
		var zero T
		return zero, fmt.Errorf("codec: decode json: %w: %w", ErrMalformed, err)
	}
	return v, nil
}

func (c *jsonCodec[T]) JSON(dst, b []byte) ([]byte, error) { return appendJSON(dst, b) }
func (c *jsonCodec[T]) Schema() string                     { return c.schema }
func (c *jsonCodec[T]) Aliases() bool                      { return false }

// appendJSON appends the JSON text b without white space.
func appendJSON(dst, b []byte) ([]byte, error) {
	out, err := jsontext.AppendFormat(dst, b, jsontext.Multiline(false), jsontext.SpaceAfterComma(false),
		jsontext.SpaceAfterColon(false))
	if err != nil {
		return nil, fmt.Errorf("codec: json: %w: %w", ErrMalformed, err)
	}
	return out, nil
}

// jsonPointerCodec is jsonCodec for pointer types, whose nil stands for null.
type jsonPointerCodec[T any] struct{ *jsonCodec[T] }

func (c *jsonPointerCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.IsNull(v) {
		return nil, nullError("json")
	}
	return c.jsonCodec.Append(dst, v)
}

func (c *jsonPointerCodec[T]) Null() T {
	var zero T
	return zero
}

func (c *jsonPointerCodec[T]) IsNull(v T) bool { return isNilPointer(&v) }

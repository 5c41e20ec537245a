package codec

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Proto returns the codec of a generated Protobuf message: the binary form, written deterministically. Its schema is
// the full name of the message: fields may be added by Protobuf's own rules of compatibility.
func Proto[T proto.Message]() Codec[T] { return newProto[T]() }

// protoCodec has no constraint on T so that For can build it for a type it only knows to be a message at run time.
type protoCodec[T any] struct {
	schema string
	fresh  func() T
}

func newProto[T any]() *protoCodec[T] {
	var zero T
	m := any(zero).(proto.Message).ProtoReflect()
	return &protoCodec[T]{
		schema: "proto:" + string(m.Descriptor().FullName()),
		fresh:  func() T { return m.New().Interface().(T) },
	}
}

// isProto reports whether T is a message type whose zero value, a nil pointer, can describe itself.
func isProto(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Implements(reflect.TypeFor[proto.Message]())
}

func (c *protoCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.IsNull(v) {
		return nil, nullError(c.schema)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, any(v).(proto.Message))
	if err != nil {
		return nil, fmt.Errorf("codec: encode %s: %w", c.schema, err)
	}
	return out, nil
}

func (c *protoCodec[T]) Decode(b []byte) (T, error) {
	v := c.fresh()
	if err := proto.Unmarshal(b, any(v).(proto.Message)); err != nil {
		var zero T
		return zero, fmt.Errorf("codec: decode %s: %w: %w", c.schema, ErrMalformed, err)
	}
	return v, nil
}

func (c *protoCodec[T]) JSON(dst, b []byte) ([]byte, error) {
	v, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(any(v).(proto.Message))
	if err != nil {
		return nil, fmt.Errorf("codec: %s: %w", c.schema, err)
	}
	// protojson varies its white space on purpose.
	return appendJSON(dst, text)
}

func (c *protoCodec[T]) Schema() string { return c.schema }
func (c *protoCodec[T]) Aliases() bool  { return false }

func (c *protoCodec[T]) Null() T {
	var zero T
	return zero
}

// IsNull works on the pointer: T is a pointer type, see isProto.
func (c *protoCodec[T]) IsNull(v T) bool { return isNilPointer(&v) }

package codec

import (
	"encoding"
	jsonv1 "encoding/json"
	"encoding/json/v2"
	"fmt"
	"reflect"
	"unsafe"
)

// For returns the default codec of T: Kafka's serializer for strings, byte slices, integers, floats and booleans and for
// types declared from them, Protobuf's binary form for messages, else JSON. A type with marshalling methods of its own
// (JSON or text) is written as JSON whatever its kind is. The error wraps ErrUnsupported and names what cannot be stored.
func For[T any]() (Codec[T], error) {
	t := reflect.TypeFor[T]()
	if isProto(t) {
		return newProto[T](), nil
	}
	if !marshalsItself(t) {
		if c, ok := basic[T](t); ok {
			return c, nil
		}
	}
	return JSON[T]()
}

// basic returns the codec of a type by its kind.
func basic[T any](t reflect.Type) (Codec[T], bool) {
	switch t.Kind() {
	case reflect.String:
		return cast[T](stringCodec{}), true
	case reflect.Bool:
		return cast[T](Bool()), true
	case reflect.Int:
		return cast[T](Codec[int](word64[int]{"int64"})), true
	case reflect.Int64:
		return cast[T](Int64()), true
	case reflect.Int32:
		return cast[T](Int32()), true
	case reflect.Int16:
		return cast[T](Codec[int16](word16[int16]{"int16"})), true
	case reflect.Int8:
		return cast[T](Codec[int8](word8[int8]{"int8"})), true
	case reflect.Uint:
		return cast[T](Codec[uint](word64[uint]{"uint64"})), true
	case reflect.Uint64:
		return cast[T](Codec[uint64](word64[uint64]{"uint64"})), true
	case reflect.Uint32:
		return cast[T](Codec[uint32](word32[uint32]{"uint32"})), true
	case reflect.Uint16:
		return cast[T](Codec[uint16](word16[uint16]{"uint16"})), true
	case reflect.Uint8:
		return cast[T](Codec[uint8](word8[uint8]{"uint8"})), true
	case reflect.Float64:
		return cast[T](Float64()), true
	case reflect.Float32:
		return cast[T](Codec[float32](float32Codec{})), true
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return nil, false
		}
		if c, ok := any(bytesCodec{}).(Codec[T]); ok {
			return c, true
		}
		return castBytes[T]{castCodec[T, []byte]{bytesCodec{}}}, true
	}
	return nil, false
}

var selfMarshalling = [...]reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[jsonv1.Marshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](),
}

// marshalsItself reports whether t or its pointer writes itself as JSON.
func marshalsItself(t reflect.Type) bool {
	for _, m := range selfMarshalling {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}

// cast makes a codec of B serve T, a type of the same kind. The codec itself serves if T is B.
func cast[T, B any](c Codec[B]) Codec[T] {
	if same, ok := c.(Codec[T]); ok {
		return same
	}
	if have, want := reflect.TypeFor[T]().Kind(), reflect.TypeFor[B]().Kind(); have != want {
		panic(fmt.Sprintf("codec: cast of a %v to a %v", have, want))
	}
	return castCodec[T, B]{c}
}

// castCodec reinterprets a T as a B. Both have the same kind and, for these kinds, therefore the same memory layout.
type castCodec[T, B any] struct{ base Codec[B] }

func (c castCodec[T, B]) Append(dst []byte, v T) ([]byte, error) {
	return c.base.Append(dst, *(*B)(unsafe.Pointer(&v)))
}

func (c castCodec[T, B]) Decode(b []byte) (T, error) {
	v, err := c.base.Decode(b)
	return *(*T)(unsafe.Pointer(&v)), err
}

func (c castCodec[T, B]) JSON(dst, b []byte) ([]byte, error) { return c.base.JSON(dst, b) }
func (c castCodec[T, B]) Schema() string                     { return c.base.Schema() }

func (c castCodec[T, B]) Aliases() bool {
	a, ok := c.base.(Aliasing)
	return !ok || a.Aliases()
}

// castBytes adds what castCodec cannot carry over for types declared from []byte.
type castBytes[T any] struct{ castCodec[T, []byte] }

func (castBytes[T]) Null() T {
	var zero T
	return zero
}

func (castBytes[T]) IsNull(v T) bool { return *(*[]byte)(unsafe.Pointer(&v)) == nil }

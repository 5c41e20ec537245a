// Package codec turns typed keys and values into bytes and back.
//
// A codec is a pure function of its input: it never keeps a slice it is given beyond what Aliasing announces,
// never starts a goroutine, and never reads a clock. Codecs are safe for use by many goroutines at once.
//
// The default codecs write the bytes of Kafka's own serializers, so that topics and changelogs can be shared with
// programs in other languages, and they are deterministic: equal values give equal bytes. Keys need that, because a
// key's bytes choose its partition and its row.
package codec

import "errors"

var (
	// ErrMalformed marks bytes that a codec cannot decode.
	ErrMalformed = errors.New("malformed")
	// ErrNull is returned by Append for a value that stands for Kafka's null: null has no encoding of its own. Callers
	// ask Nullable first and write a tombstone or a null record instead.
	ErrNull = errors.New("null has no encoding")
	// ErrUnsupported marks a Go type that has no default codec or may not be used as a key.
	ErrUnsupported = errors.New("unsupported type")
)

// Codec encodes and decodes values of one type.
type Codec[T any] interface {
	// Append appends the encoding of v to dst and returns the extended slice. After an error the returned slice is nil.
	Append(dst []byte, v T) ([]byte, error)
	// Decode returns the value encoded in b. The result may alias b (see Aliasing); the caller never modifies b
	// afterwards. An empty b is an empty encoding, never null: null is the caller's business (see Nullable).
	Decode(b []byte) (T, error)
	// JSON appends a JSON view of the encoded bytes b to dst, for people and dashboards.
	JSON(dst, b []byte) ([]byte, error)
	// Schema describes the encoding. It is stable across builds, and two codecs with the same schema understand each
	// other's bytes: "string", "int64", "json:{id:string,n:int}".
	Schema() string
}

// Nullable is implemented by codecs whose type has a value that stands for Kafka's null: a nil []byte, a nil pointer,
// a nil message.
type Nullable[T any] interface {
	// Null returns that value.
	Null() T
	// IsNull reports whether v is that value.
	IsNull(v T) bool
}

// Aliasing is implemented by codecs that say whether decoded values share memory with the bytes they were decoded from.
// Who keeps a value that does keeps the whole buffer alive. A codec that says nothing is taken to alias.
type Aliasing interface {
	// Aliases reports whether decoded values share memory with their input.
	Aliases() bool
}
